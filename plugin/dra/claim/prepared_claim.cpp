#include "plugin/dra/claim/prepared_claim.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "plugin/dra/claim/pod_use.h"

namespace neuron::plugin::dra {
namespace {

using nlohmann::json;

constexpr int kMaxIndex = 65535;
constexpr const char* kCompleted = "completed";
constexpr const char* kStarted = "started";
constexpr int kMaxLnc = 8;  // physical cores of the largest device

json hardware_json(const Hardware& hardware) {
  json devices = json::array();
  for (const HeldDevice& held : hardware.devices) {
    json one = {{"device", held.device}};
    if (!held.places.empty()) one["places"] = held.places;
    devices.push_back(std::move(one));
  }
  return {{"neuron", std::move(devices)}, {"efas", hardware.efas}};
}

json request_json(const PreparedRequest& request) {
  json one = hardware_json(request.share.hardware);
  one["request"] = request.share.request;
  if (request.share.admin_access) one["adminAccess"] = true;
  if (request.share.config.lnc) one["lnc"] = *request.share.config.lnc;
  if (request.share.config.ultraserver_mode) one["ultraserverMode"] = *request.share.config.ultraserver_mode;
  if (!request.environment.empty()) one["environment"] = request.environment;
  return one;
}

json device_json(const PreparedDevice& device) {
  json one = {{"requests", device.requests}, {"pool", device.pool}, {"device", device.device}, {"cdi", device.cdi_ids}};
  if (device.share_id) one["shareID"] = *device.share_id;
  return one;
}

// The readers below let nlohmann::json throw on a wrong type; parse_prepared_claim catches.
int number_of(const json& value) {
  if (!value.is_number_integer()) throw json::type_error::create(302, "not an integer", &value);
  const auto number = value.get<std::int64_t>();
  if (number < 0 || number > kMaxIndex) throw json::out_of_range::create(401, "a number out of range", &value);
  return static_cast<int>(number);
}

Hardware hardware_of(const json& one) {
  Hardware hardware;
  for (const json& held : one.value("neuron", json::array())) {
    HeldDevice device{number_of(held.at("device")), {}};
    for (const json& place : held.value("places", json::array())) device.places.push_back(number_of(place));
    std::sort(device.places.begin(), device.places.end());
    hardware.add({{std::move(device)}, {}});
  }
  auto efas = one.value("efas", std::vector<std::string>());
  std::sort(efas.begin(), efas.end());
  hardware.add({{}, std::move(efas)});
  return hardware;
}

PreparedRequest request_of(const json& one) {
  PreparedRequest request;
  request.share.request = one.at("request").get<std::string>();
  request.share.hardware = hardware_of(one);
  request.share.admin_access = one.value("adminAccess", false);
  if (one.contains("lnc")) request.share.config.lnc = number_of(one["lnc"]);
  if (one.contains("ultraserverMode")) request.share.config.ultraserver_mode = number_of(one["ultraserverMode"]);
  request.environment = one.value("environment", Environment());
  return request;
}

PreparedDevice device_of(const json& one) {
  PreparedDevice device{one.at("requests").get<std::vector<std::string>>(),
                        one.at("pool").get<std::string>(),
                        one.at("device").get<std::string>(),
                        one.at("cdi").get<std::vector<std::string>>(),
                        {}};
  if (one.contains("shareID")) device.share_id = one["shareID"].get<std::string>();
  return device;
}

PreparedClaim claim_of(const json& object) {
  PreparedClaim claim;
  claim.uid = object.at("uid").get<std::string>();
  const std::string state = object.at("state").get<std::string>();
  if (state != kCompleted && state != kStarted) throw json::other_error::create(501, "an unknown state", &object);
  claim.is_completed = state == kCompleted;
  claim.claim_namespace = object.value("namespace", "");
  claim.name = object.value("name", "");
  claim.resource_version = object.value("resourceVersion", "");
  for (const json& one : object.value("requests", json::array())) claim.requests.push_back(request_of(one));
  for (const json& one : object.value("devices", json::array())) claim.devices.push_back(device_of(one));
  claim.cdi_text = object.value("cdi", "");
  const int lnc = object.contains("nodeLnc") ? number_of(object["nodeLnc"]) : 0;
  if (lnc >= 1 && lnc <= kMaxLnc) claim.node_lnc = lnc;
  if (object.contains("graceSeconds")) {
    claim.grace = std::clamp(std::chrono::seconds(object["graceSeconds"].get<std::int64_t>()), std::chrono::seconds(0),
                             kMaxGrace);
  }
  return claim;
}

}  // namespace

Hardware PreparedClaim::held() const {
  Hardware hardware;
  if (!is_completed) return hardware;
  for (const PreparedRequest& request : requests) {
    if (!request.share.admin_access) hardware.add(request.share.hardware);
  }
  return hardware;
}

bool PreparedClaim::is_whole() const {
  return std::none_of(devices.begin(), devices.end(),
                      [](const PreparedDevice& device) { return device.requests.empty(); });
}

std::string PreparedClaim::shown() const {
  return name.empty() ? "with uid " + uid : claim_namespace + "/" + name + " (uid " + uid + ")";
}

std::string to_text(const PreparedClaim& claim) {
  json requests = json::array();
  for (const PreparedRequest& one : claim.requests) requests.push_back(request_json(one));
  json devices = json::array();
  for (const PreparedDevice& one : claim.devices) devices.push_back(device_json(one));
  json object = {{"uid", claim.uid},
                 {"state", claim.is_completed ? kCompleted : kStarted},
                 {"namespace", claim.claim_namespace},
                 {"name", claim.name},
                 {"resourceVersion", claim.resource_version},
                 {"requests", std::move(requests)},
                 {"devices", std::move(devices)},
                 {"cdi", claim.cdi_text}};
  if (claim.node_lnc) object["nodeLnc"] = *claim.node_lnc;
  if (claim.grace) object["graceSeconds"] = claim.grace->count();
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<PreparedClaim> parse_prepared_claim(std::string_view text) {
  TRY_ASSIGN(const json object, kube::parse_object(text, "a prepared claim"));
  try {
    return claim_of(object);
  } catch (const json::exception& error) {
    return fail(ErrorCode::data_corrupt, std::string("not a prepared claim: ") + printable(error.what(), 100));
  }
}

}  // namespace neuron::plugin::dra
