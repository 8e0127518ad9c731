#include "plugin/dra/claim/claim_reader.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "plugin/dra/claim/json_fields.h"

namespace neuron::plugin::dra {
namespace {

constexpr std::string_view kGroup = "/apis/resource.k8s.io";
constexpr std::array<std::string_view, 3> kVersions{"v1", "v1beta2", "v1beta1"};  // the newest first

// A name is part of a path: only what names of objects are made of (RFC 1123).
Result<void> check_name(std::string_view name) {
  constexpr std::size_t kMaxName = 253;
  const bool is_plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
  if (is_plain && !name.empty() && name.size() <= kMaxName && name.front() != '.') return {};
  return fail(ErrorCode::invalid_argument, "\"" + printable(name, 64) + "\" is not a valid object name");
}

}  // namespace

ClaimReader::ClaimReader(kube::Api& api, std::string driver) : api_(api), driver_(std::move(driver)) {}

Result<std::string> ClaimReader::get(const std::string& path) {
  const kube::ApiCall call{kube::Method::get, path};
  TRY_ASSIGN(kube::ApiReply reply, api_.call(call));
  return kube::body_of(std::move(reply), call);
}

// The newest version that the server has and we know; "" when it does not say.
std::string ClaimReader::ask_version() {
  const auto answer = get(std::string(kGroup));
  if (!answer || answer->size() > kMaxObjectBytes) return "";
  const auto group = kube::parse_object(*answer, "the API server's answer");
  if (!group) return "";
  std::vector<std::string> served;
  for (const auto& version : list_of(*group, "versions")) served.push_back(text_of(version, "version"));
  for (const std::string_view version : kVersions) {
    if (std::find(served.begin(), served.end(), version) != served.end()) return std::string(version);
  }
  return "";
}

Result<Claim> ClaimReader::read_claim(const std::string& claim_namespace, const std::string& name) {
  TRY(check_name(claim_namespace));
  TRY(check_name(name));
  const auto path_in = [&](std::string_view version) {
    return std::string(kGroup) + "/" + std::string(version) + "/namespaces/" + claim_namespace + "/resourceclaims/" +
           name;
  };
  std::string version;
  {
    const MutexLock lock(mutex_);
    version = version_;
  }
  const std::string first = version.empty() ? std::string(kVersions[0]) : version;
  auto answer = get(path_in(first));
  // Not there, or not in this version: the server may have been replaced by another one since.
  if (!answer && answer.error().code == ErrorCode::not_found) {
    version = ask_version();
    if (!version.empty() && version != first) answer = get(path_in(version));
  }
  if (!answer) return fail(std::move(answer).error());
  {
    const MutexLock lock(mutex_);
    version_ = version.empty() ? first : version;
  }
  return parse_claim(*answer, driver_);
}

Result<PodUse> ClaimReader::read_pod(const std::string& pod_namespace, const std::string& name) {
  TRY(check_name(pod_namespace));
  TRY(check_name(name));
  TRY_ASSIGN(const std::string answer, get("/api/v1/namespaces/" + pod_namespace + "/pods/" + name));
  return parse_pod_use(answer);
}

}  // namespace neuron::plugin::dra
