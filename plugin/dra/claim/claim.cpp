#include "plugin/dra/claim/claim.h"

#include <algorithm>
#include <cstddef>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "plugin/dra/claim/json_fields.h"

namespace neuron::plugin::dra {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxResults = 4 * 32;
constexpr std::size_t kMaxConfigs = 4 * 32;
constexpr std::size_t kMaxConsumers = 4 * 256;
constexpr std::size_t kMaxConsumer = 128;  // bytes of a name that only messages show
constexpr std::size_t kMaxTolerations = 64;
constexpr std::size_t kMaxRequestName = 2 * 63 + 1;  // two labels and a slash

Error not_a_claim(const char* why) {
  return make_error(ErrorCode::data_corrupt, std::string("the API server's answer is not a ResourceClaim: ") + why);
}

void add_tolerations(const json& list, std::vector<Toleration>& tolerations) {
  for (const json& one : list) {
    if (tolerations.size() >= kMaxTolerations) return;
    const std::string how = text_of(one, "operator");
    if (!one.is_object() || (!how.empty() && how != "Equal" && how != "Exists")) continue;
    Toleration toleration{text_of(one, "key", 317), how == "Exists", text_of(one, "value"), text_of(one, "effect")};
    if (std::find(tolerations.begin(), tolerations.end(), toleration) == tolerations.end()) {
      tolerations.push_back(std::move(toleration));
    }
  }
}

// The request, or alternative of it, that a result is for. v1beta1 has the fields of `exactly` in the request itself.
const json& request_of(const json& spec, const ClaimResult& result) {
  for (const json& request : list_of(member(spec, "devices"), "requests")) {
    if (text_of(request, "name") != result.request) continue;
    if (result.subrequest.empty()) {
      const json& exactly = member(request, "exactly");
      return exactly.is_object() ? exactly : request;
    }
    for (const json& alternative : list_of(request, "firstAvailable")) {
      if (text_of(alternative, "name") == result.subrequest) return alternative;
    }
  }
  return member(json(), "");
}

ClaimResult result_of(const json& spec, const json& one) {
  ClaimResult result;
  const std::string request = text_of(one, "request", kMaxRequestName);
  const std::size_t slash = request.find('/');
  result.request = request.substr(0, slash);
  if (slash != std::string::npos) result.subrequest = request.substr(slash + 1);
  result.pool = text_of(one, "pool");
  result.device = text_of(one, "device");
  result.admin_access = is_true(one, "adminAccess");
  if (const std::string share = text_of(one, "shareID"); !share.empty()) result.share_id = share;
  add_tolerations(list_of(one, "tolerations"), result.tolerations);
  add_tolerations(list_of(request_of(spec, result), "tolerations"), result.tolerations);
  return result;
}

OpaqueConfig config_of(const json& one) {
  OpaqueConfig config;
  config.from_class = text_of(one, "source") == "FromClass";
  for (const json& request : list_of(one, "requests")) {
    if (request.is_string() && config.requests.size() < kMaxResults) config.requests.push_back(request);
  }
  config.parameters = member(member(one, "opaque"), "parameters").dump(-1, ' ', false, json::error_handler_t::replace);
  return config;
}

void add_consumers(const json& reserved, Claim& claim) {
  for (const json& one : reserved) {
    const std::string resource = text_of(one, "resource");
    if (resource == "pods" && text_of(one, "apiGroup").empty()) {
      claim.pods.push_back({text_of(one, "name"), text_of(one, "uid")});
    } else {
      claim.other_consumers.push_back(printable(resource + "/" + text_of(one, "name"), kMaxConsumer));
    }
  }
}

}  // namespace

bool tolerates(const std::vector<Toleration>& tolerations, std::string_view key, std::string_view value,
               std::string_view effect) {
  return std::any_of(tolerations.begin(), tolerations.end(), [&](const Toleration& one) {
    if (!one.effect.empty() && one.effect != effect) return false;
    if (one.key.empty()) return one.exists;
    return one.key == key && (one.exists || one.value == value);
  });
}

Result<Claim> parse_claim(std::string_view text, std::string_view driver) {
  if (text.size() > kMaxObjectBytes) return fail(not_a_claim("too long"));
  TRY_ASSIGN(const json object, kube::parse_object(text, "the API server's answer"));
  const json& metadata = member(object, "metadata");
  if (!metadata.is_object()) return fail(not_a_claim("no metadata"));
  Claim claim{text_of(metadata, "namespace"),
              text_of(metadata, "name"),
              text_of(metadata, "uid"),
              text_of(metadata, "resourceVersion"),
              false,
              {},
              {},
              {}};
  if (claim.name.empty() || claim.uid.empty()) return fail(not_a_claim("no name or uid"));

  const json& status = member(object, "status");
  const json& devices = member(member(status, "allocation"), "devices");
  claim.is_allocated = member(status, "allocation").is_object();
  const json& results = list_of(devices, "results");
  const json& configs = list_of(devices, "config");
  const json& reserved = list_of(status, "reservedFor");
  if (results.size() > kMaxResults || configs.size() > kMaxConfigs || reserved.size() > kMaxConsumers) {
    return fail(not_a_claim("more results, configurations or consumers than the API allows"));
  }
  for (const json& one : results) {
    if (text_of(one, "driver") == driver) claim.results.push_back(result_of(member(object, "spec"), one));
  }
  for (const json& one : configs) {
    if (text_of(member(one, "opaque"), "driver") == driver) claim.configs.push_back(config_of(one));
  }
  std::stable_partition(claim.configs.begin(), claim.configs.end(),
                        [](const OpaqueConfig& config) { return config.from_class; });
  add_consumers(reserved, claim);
  return claim;
}

}  // namespace neuron::plugin::dra
