#include "plugin/dra/claim/claim_status.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "agent/base/parse.h"
#include "agent/core/hardware.h"
#include "agent/kube/answers.h"

namespace neuron::plugin::dra {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr const char* kVersion = "resource.k8s.io/v1";
constexpr std::size_t kMaxShown = 640;

std::string path_of(const ClaimRecord& record) {
  return std::string("/apis/") + kVersion + "/namespaces/" + kube::percent_encoded(record.claim_namespace) +
         "/resourceclaims/" + kube::percent_encoded(record.name);
}

// A device is known by its pool, its name and its share.
using Key = std::tuple<std::string, std::string, std::string>;

Key key_of(const PreparedDevice& device) {
  return {device.pool, device.device, device.share_id.value_or("")};
}

// Far below the 10 KiB that the API allows: a name stands for 16 devices, or one interface, at most.
json data_of(const PreparedDevice& device, const model::HostScan& host) {
  const auto name = core::parse_pool_name(device.share.empty() ? device.device : device.share);
  if (!name) return json::object();
  const core::Hardware hardware = core::hardware_of(*name, host);
  json data = json::object();
  for (const core::HeldDevice& one : hardware.devices) {
    data["deviceNodes"].push_back("/dev/neuron" + std::to_string(one.device));
  }
  if (const auto cores = core::core_ids_of(hardware, host); !cores.empty()) data["cores"] = format_int_list(cores);
  for (const model::EfaInterface& efa : host.efas) {
    if (std::ranges::find(hardware.efas, efa.name) == hardware.efas.end()) continue;
    data["rdmaDevice"] = efa.name;
    data["pciAddress"] = model::to_string(efa.bdf);
    if (efa.uverbs) data["deviceNodes"].push_back("/dev/infiniband/" + *efa.uverbs);
  }
  return data;
}

}  // namespace

std::string claim_status_text(const ClaimRecord& record, std::string_view driver, const grant::NodeUnits* node,
                              std::chrono::system_clock::time_point now) {
  json devices = json::array();
  for (const PreparedDevice& device : record.devices) {
    json one = {{"driver", driver}, {"pool", device.pool}, {"device", device.device}};
    if (device.share_id) one["shareID"] = *device.share_id;
    one["conditions"] = {{{"type", "Ready"},
                          {"status", "True"},
                          {"reason", "Prepared"},
                          {"message", "prepared for containers on this node"},
                          {"lastTransitionTime", utc_text(now)}}};
    if (node != nullptr) {
      if (json data = data_of(device, node->snapshot().host); !data.empty()) one["data"] = std::move(data);
    }
    devices.push_back(std::move(one));
  }
  const json claim = {{"apiVersion", kVersion},
                      {"kind", "ResourceClaim"},
                      {"metadata", {{"namespace", record.claim_namespace}, {"name", record.name}, {"uid", record.uid}}},
                      {"status", {{"devices", std::move(devices)}}}};
  return claim.dump(-1, ' ', false, json::error_handler_t::replace);
}

ClaimStatusWriter::ClaimStatusWriter(Settings settings, Ports ports, kube::Api& api, const Clock& clock)
    : settings_(std::move(settings)), ports_(std::move(ports)), api_(api), clock_(clock) {}

void ClaimStatusWriter::run(const std::stop_token& stop) {
  loop_.run(stop, [this] { return turn(); });
}

milliseconds ClaimStatusWriter::turn() {
  constexpr std::chrono::hours kIdle{1};
  const auto until = [this](SteadyTime when) { return std::chrono::ceil<milliseconds>(when - clock_.now()); };
  if (clock_.now() < not_before_) return until(not_before_);
  const ClaimRecords records = ports_.records();
  const auto is_gone = [&](const auto& one) { return !records.contains(one.first); };
  std::erase_if(done_, is_gone);
  std::erase_if(refused_, is_gone);
  SteadyTime next = clock_.now() + kIdle;
  for (const auto& [uid, record] : records) {
    // One that was rebuilt from its CDI file lacks its name, or the shares' ids.
    if (!record->is_whole() || record->name.empty()) continue;
    if (const auto known = done_.find(uid); known != done_.end() && known->second == record->resource_version) continue;
    const auto refusal = refused_.find(uid);
    const bool waits = refusal != refused_.end() && refusal->second.version == record->resource_version &&
                       clock_.now() < refusal->second.not_before;
    if (!waits) finish(*record, write(*record));
    if (is_down_) return until(not_before_);
    if (const auto still = refused_.find(uid); still != refused_.end()) next = std::min(next, still->second.not_before);
  }
  is_first_ = false;
  return until(next);
}

// A server that has no answer, or no time, has none for other claims either.
Result<std::string> ClaimStatusWriter::call(const kube::ApiCall& call) {
  constexpr int kTooMany = 429, kBadGateway = 502, kLastOfGateways = 504;
  is_down_ = true;
  TRY_ASSIGN(kube::ApiReply reply, api_.call(call));
  is_down_ = reply.status == kTooMany || (reply.status >= kBadGateway && reply.status <= kLastOfGateways);
  return kube::body_of(std::move(reply), call);
}

Result<bool> ClaimStatusWriter::is_written(const ClaimRecord& record) {
  const kube::ApiCall get{.path = path_of(record)};
  TRY_ASSIGN(const std::string body, call(get));
  TRY_ASSIGN(const json claim, kube::parse_object(body, "the ResourceClaim"));
  std::set<Key> shown;
  for (const json& one : kube::list_of(kube::member(claim, "status"), "devices")) {
    if (kube::text_of(one, "driver") != settings_.driver) continue;
    shown.insert({kube::text_of(one, "pool"), kube::text_of(one, "device"), kube::text_of(one, "shareID")});
  }
  return std::ranges::all_of(record.devices, [&](const auto& device) { return shown.contains(key_of(device)); });
}

Result<void> ClaimStatusWriter::write(const ClaimRecord& record) {
  if (is_first_) {
    TRY_ASSIGN(const bool is_there, is_written(record));
    if (is_there) return {};
  }
  const grant::NodeUnitsPtr node = ports_.node ? ports_.node() : nullptr;
  const kube::ApiCall apply{.method = kube::Method::apply,
                            .path = path_of(record) + "/status",
                            .query = "fieldManager=neuron-agent&force=true",
                            .body = claim_status_text(record, settings_.driver, node.get(), settings_.wall()),
                            .accept = kube::kMetadataOnly};
  TRY(call(apply));
  return {};
}

// A claim that has gone or changed, or whose text is refused, needs no other attempt. Any other refusal is of this
// claim alone, such as by a policy; or of all, who then wait each for itself.
void ClaimStatusWriter::finish(const ClaimRecord& record, const Result<void>& written) {
  const auto log = [&](std::string& last) {
    if (std::exchange(last, written.error().message) == written.error().message) return;
    spdlog::warn("claim status not written claim={}: {}", printable_line(record.shown(), kMaxShown),
                 printable_line(written.error().message, kMaxShown));
  };
  if (is_down_) {
    log(error_);
    not_before_ = clock_.now() + backoff_.next();
    return;
  }
  backoff_.reset();
  error_.clear();
  const ErrorCode code = written ? ErrorCode::internal : written.error().code;
  const bool is_gone = code == ErrorCode::not_found || code == ErrorCode::failed_precondition;
  Refusal& refusal = refused_[record.uid];
  if (!written && !is_gone) log(refusal.error);
  if (written || is_gone || code == ErrorCode::invalid_argument) {
    refused_.erase(record.uid);
    done_[record.uid] = record.resource_version;
    return;
  }
  if (std::exchange(refusal.version, record.resource_version) != record.resource_version) refusal.backoff.reset();
  const milliseconds pause = refusal.backoff.next();
  // The first times as after any failure: roles and policies take a moment to become effective.
  const bool is_lasting = pause > kLongestRetry / 4;
  refusal.not_before = clock_.now() + (is_lasting ? milliseconds(kRefusedRetry) : pause);
}

}  // namespace neuron::plugin::dra
