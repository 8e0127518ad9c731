#include "plugin/dra/claim/claim_config.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "plugin/dra/claim/json_fields.h"

namespace neuron::plugin::dra {
namespace {

using nlohmann::json;

// A kind has one field, which takes one of a few numbers.
struct Kind {
  std::string_view name;
  std::string_view field;
  std::vector<int> accepted;
  std::optional<int> RequestConfig::*member;
};

const std::array<Kind, 2>& kinds() {
  static const std::array<Kind, 2> kAll{
      {{"NeuronConfig", "logicalNeuronCore", {1, 2}, &RequestConfig::lnc},
       {"UltraServerConfig", "ultraserverMode", {1, 2, 4}, &RequestConfig::ultraserver_mode}}};
  return kAll;
}

constexpr std::array<std::string_view, 3> kApiVersions{"neuron.aws.com/v1", "neuron.aws.com/v1alphav1",
                                                       "resource.neuron.aws.com/v1alphav1"};
constexpr std::size_t kMaxShown = 64;

std::string shown(const json& value) {
  return printable(value.dump(-1, ' ', false, json::error_handler_t::replace), kMaxShown);
}

Error wrong(const std::string& what) {
  return make_error(ErrorCode::invalid_argument, "error applying config: " + what);
}

std::string takes(const Kind& kind) {
  std::string text = std::string(kind.name) + " takes " + std::string(kind.field) + ": ";
  for (std::size_t i = 0; i < kind.accepted.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == kind.accepted.size() ? " or " : ", ") + std::to_string(kind.accepted[i]);
  }
  return text;
}

Result<const Kind*> kind_of(const json& parameters) {
  if (!parameters.is_object()) return fail(wrong("the parameters are not an object with apiVersion and kind"));
  const json& version = member(parameters, "apiVersion");
  if (!version.is_string() || std::find(kApiVersions.begin(), kApiVersions.end(),
                                        version.get_ref<const std::string&>()) == kApiVersions.end()) {
    return fail(wrong("apiVersion is " + shown(version) + "; it must be \"neuron.aws.com/v1\" (the older " +
                      std::string(kApiVersions[1]) + " and " + std::string(kApiVersions[2]) + " are accepted too)"));
  }
  for (const Kind& kind : kinds()) {
    if (text_of(parameters, "kind") == kind.name) return &kind;
  }
  return fail(wrong("kind is " + shown(member(parameters, "kind")) + "; it must be NeuronConfig or UltraServerConfig"));
}

// The number of the kind's field, with nothing else beside it.
Result<int> value_of(const Kind& kind, const json& parameters) {
  for (const auto& [key, value] : parameters.items()) {
    if (key != "apiVersion" && key != "kind" && key != kind.field) {
      return fail(wrong("strict decoding error: unknown field \"" + printable(key, kMaxShown) + "\"; " + takes(kind)));
    }
  }
  const json& value = member(parameters, kind.field);
  if (value.is_null()) return fail(wrong(std::string(kind.field) + " is missing; " + takes(kind)));
  const bool accepted = value.is_number_integer() && std::any_of(kind.accepted.begin(), kind.accepted.end(),
                                                                 [&](int number) { return value == number; });
  if (!accepted) return fail(wrong(std::string(kind.field) + " is " + shown(value) + "; " + takes(kind)));
  return value.get<int>();
}

bool is_for(const OpaqueConfig& config, const std::string& request) {
  const std::string base = request.substr(0, request.find('/'));
  return config.requests.empty() ||
         std::any_of(config.requests.begin(), config.requests.end(),
                     [&](const std::string& name) { return name == request || name == base; });
}

}  // namespace

Result<RequestConfig> config_for(const std::vector<OpaqueConfig>& configs, const std::string& request) {
  RequestConfig found;
  for (const bool from_class : {true, false}) {
    for (const OpaqueConfig& config : configs) {
      if (config.from_class != from_class) continue;
      const auto parsed = kube::parse_object(config.parameters, "parameters");
      const json& parameters = parsed ? *parsed : member(json(), "");
      TRY_ASSIGN(const Kind* kind, kind_of(parameters));
      TRY_ASSIGN(const int value, value_of(*kind, parameters));
      if (is_for(config, request)) found.*(kind->member) = value;
    }
  }
  return found;
}

}  // namespace neuron::plugin::dra
