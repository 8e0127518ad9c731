#include "agent/status/startup_taint.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/kube/answers.h"
#include "agent/status/node_report.h"

namespace neuron::status {
namespace {

using Json = nlohmann::json;
using kube::member_of;
using kube::text_of;

constexpr std::array<std::string_view, 3> kEffects = {"NoSchedule", "PreferNoSchedule", "NoExecute"};

bool is_shown(const Json& node, const std::vector<std::string>& resources) {
  bool any = false;
  bool all = true;
  for (const std::string& name : resources) {
    const bool is_driver = name.find('/') == std::string::npos;
    const std::string count = text_of(node, {"status", "allocatable", name.c_str()});
    all = all && (is_driver || !count.empty());
    any = any || is_driver || (!count.empty() && count != "0");
  }
  return any && all;
}

bool is_meant(const Json& entry, const StartupTaint& taint) {
  return text_of(entry, {"key"}) == taint.key && (taint.effect.empty() || text_of(entry, {"effect"}) == taint.effect);
}

}  // namespace

Result<StartupTaint> parse_startup_taint(std::string_view text) {
  const auto colon = text.find(':');
  StartupTaint taint{std::string(text.substr(0, colon)), ""};
  if (colon != std::string_view::npos) taint.effect = text.substr(colon + 1);
  const bool has_effect = colon == std::string_view::npos || std::ranges::count(kEffects, taint.effect) > 0;
  if (has_effect && taint.key.starts_with(kOwnPrefix) && kube::check_label_key(taint.key)) return taint;
  return fail(ErrorCode::invalid_argument,
              "\"" + printable(text) +
                  "\" is not a startup taint: use neuron-agent/NAME or neuron-agent/NAME:EFFECT, such as "
                  "neuron-agent/starting:NoSchedule; effects are NoSchedule, PreferNoSchedule and NoExecute");
}

std::string to_string(const StartupTaint& taint) {
  return taint.key + (taint.effect.empty() ? "" : ":" + taint.effect);
}

Result<TaintState> remove_startup_taint(kube::Api& api, const std::string& node, const StartupTaint& taint,
                                        const std::vector<std::string>& resources) {
  const std::string path = "/api/v1/nodes/" + kube::percent_encoded(node);
  const kube::ApiCall get{.path = path};
  TRY_ASSIGN(kube::ApiReply reply, api.call(get));
  TRY_ASSIGN(const std::string body, kube::body_of(std::move(reply), get));
  TRY_ASSIGN(const Json object, kube::parse_object(body, "the Node object"));
  const Json* taints = member_of(object, {"spec", "taints"});
  const auto meant = [&taint](const Json& entry) { return is_meant(entry, taint); };
  if (taints == nullptr || !taints->is_array() || std::ranges::none_of(*taints, meant)) return TaintState::absent;
  if (!is_shown(object, resources)) return TaintState::waiting;
  Json rest = Json::array();
  std::ranges::copy_if(*taints, std::back_inserter(rest), [&](const Json& entry) { return !meant(entry); });
  // The list is one field: with the version, so that a taint that was added meanwhile is not lost.
  const Json patch = {{"metadata",
                       {{"uid", text_of(object, {"metadata", "uid"})},
                        {"resourceVersion", text_of(object, {"metadata", "resourceVersion"})}}},
                      {"spec", {{"taints", rest.empty() ? Json() : std::move(rest)}}}};
  const kube::ApiCall write{.method = kube::Method::merge_patch,
                            .path = path,
                            .query = "fieldManager=neuron-agent",
                            .body = patch.dump(-1, ' ', false, Json::error_handler_t::replace),
                            .accept = kube::kMetadataOnly};
  TRY_ASSIGN(kube::ApiReply written, api.call(write));
  TRY(kube::body_of(std::move(written), write));
  return TaintState::removed;
}

bool is_offered(const model::HostScan& host, const std::map<std::string, bool>& registered) {
  const core::InstanceType* type = core::find_instance_type(host.instance_type);
  const int promised = type != nullptr ? type->device_count : host.neuron_pci_functions;
  if (promised > 0 && host.devices.empty()) return false;
  return !registered.empty() && std::ranges::all_of(registered, [](const auto& one) { return one.second; });
}

std::chrono::milliseconds StartupGate::turn(const std::vector<std::string>& registered, SteadyTime now) {
  if (!taint_ || is_done_ || registered.empty()) return kIdle;
  if (now >= not_before_) {
    const auto state = remove_startup_taint(api_, node_, *taint_, registered);
    is_done_ = state && *state != TaintState::waiting;
    if (state) error_.clear();
    if (state && *state == TaintState::removed) spdlog::info("startup taint removed taint={}", to_string(*taint_));
    if (!state && error_ != state.error().message) {
      error_ = state.error().message;
      spdlog::warn("startup taint not removed, pods are not placed here: {}", error_);
    }
    if (is_done_) return kIdle;
    not_before_ = now + (state ? kWaiting : backoff_.next());
  }
  return std::chrono::ceil<std::chrono::milliseconds>(not_before_ - now);
}

}  // namespace neuron::status
