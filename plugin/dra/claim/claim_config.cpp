#include "plugin/dra/claim/claim_config.h"

#include <algorithm>
#include <array>
#include <utility>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"

namespace neuron::plugin::dra {
namespace {

using kube::member;
using kube::text_of;
using nlohmann::json;

// A kind has one field, which takes one of a few numbers.
struct ConfigKind {
  std::string_view name;
  std::string_view field;
  std::vector<int> accepted;
  std::optional<int> RequestConfig::*member;
};

const std::array<ConfigKind, 2>& config_kinds() {
  static const std::array<ConfigKind, 2> kAll{
      {{"NeuronConfig", "logicalNeuronCore", {1, 2}, &RequestConfig::lnc},
       {"UltraServerConfig", "ultraserverMode", {1, 2, 4}, &RequestConfig::ultraserver_mode}}};
  return kAll;
}

constexpr std::array<std::string_view, 3> kApiVersions{"neuron.aws.com/v1", "neuron.aws.com/v1alphav1",
                                                       "resource.neuron.aws.com/v1alphav1"};
constexpr std::size_t kMaxShown = 64;

std::string shown(const json& value, std::size_t max_bytes = kMaxShown) {
  return printable(value.dump(-1, ' ', false, json::error_handler_t::replace), max_bytes);
}

tl::unexpected<ConfigRefusal> refused(const std::string& problem, std::string fix = "") {
  return tl::unexpected(ConfigRefusal{"error applying config: " + problem, std::move(fix)});
}

std::string takes(const ConfigKind& kind) {
  std::string text = std::string(kind.name) + " takes " + std::string(kind.field) + ": ";
  for (std::size_t i = 0; i < kind.accepted.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == kind.accepted.size() ? " or " : ", ") + std::to_string(kind.accepted[i]);
  }
  return text;
}

tl::expected<const ConfigKind*, ConfigRefusal> kind_of(const json& parameters) {
  if (!parameters.is_object()) return refused("the parameters are not an object with apiVersion and kind");
  const json& version = member(parameters, "apiVersion");
  if (!version.is_string() ||
      std::ranges::find(kApiVersions, version.get_ref<const std::string&>()) == kApiVersions.end()) {
    return refused("apiVersion is " + shown(version), "it must be \"" + std::string(kApiVersions[0]) +
                                                          "\" (the older " + std::string(kApiVersions[1]) + " and " +
                                                          std::string(kApiVersions[2]) + " are accepted too)");
  }
  for (const ConfigKind& kind : config_kinds()) {
    if (text_of(parameters, "kind") == kind.name) return &kind;
  }
  return refused("kind is " + shown(member(parameters, "kind")), "it must be NeuronConfig or UltraServerConfig");
}

// The number of the kind's field, with nothing else beside it.
tl::expected<int, ConfigRefusal> value_of(const ConfigKind& kind, const json& parameters) {
  for (const auto& [key, value] : parameters.items()) {
    if (key == "apiVersion" || key == "kind" || key == kind.field) continue;
    return refused("strict decoding error: unknown field \"" + printable(key, kMaxShown) + "\"", takes(kind));
  }
  const json& value = member(parameters, kind.field);
  if (value.is_null()) return refused(std::string(kind.field) + " is missing", takes(kind));
  const bool is_accepted =
      value.is_number_integer() && std::ranges::any_of(kind.accepted, [&](int number) { return value == number; });
  if (!is_accepted) return refused(std::string(kind.field) + " is " + shown(value), takes(kind));
  return value.get<int>();
}

struct Setting {
  const ConfigKind* kind;
  int value;
};

tl::expected<Setting, ConfigRefusal> setting_of(const OpaqueConfig& config) {
  const auto parsed = kube::parse_object(config.parameters, "parameters");
  const json& parameters = parsed ? *parsed : member(json(), "");
  return kind_of(parameters).and_then([&](const ConfigKind* kind) {
    return value_of(*kind, parameters).map([&](int value) { return Setting{kind, value}; });
  });
}

bool is_for(const OpaqueConfig& config, const std::string& request) {
  const std::string base = request.substr(0, request.find('/'));
  return config.requests.empty() ||
         std::ranges::any_of(config.requests, [&](const std::string& name) { return name == request || name == base; });
}

}  // namespace

std::optional<ConfigRefusal> refusal_of(const OpaqueConfig& config) {
  auto setting = setting_of(config);
  return setting ? std::nullopt : std::optional(std::move(setting).error());
}

ConfigRefusal no_cores(const std::string& request) {
  return {"the request \"" + request + "\" has no core of its device", "request at least one"};
}

Result<RequestConfig> config_for(const std::vector<OpaqueConfig>& configs, const std::string& request) {
  RequestConfig found;
  for (const bool from_class : {true, false}) {
    for (const OpaqueConfig& config : configs) {
      if (config.from_class != from_class) continue;
      const auto setting = setting_of(config);
      if (!setting) {
        const auto& [problem, fix] = setting.error();
        return fail(ErrorCode::invalid_argument, RefusalReason::bad_config,
                    fix.empty() ? problem : problem + "; " + fix);
      }
      if (is_for(config, request)) found.*(setting->kind->member) = setting->value;
    }
  }
  return found;
}

}  // namespace neuron::plugin::dra
