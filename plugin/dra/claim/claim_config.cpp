#include "plugin/dra/claim/claim_config.h"

#include <algorithm>
#include <array>
#include <utility>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"

namespace neuron::plugin::dra {
namespace {

using kube::list_of;
using kube::member;
using kube::text_of;
using nlohmann::json;

// ---- Decoding

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
constexpr std::size_t kMaxValue = 120;

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

// ---- Checking before there is an allocation

struct Kind {
  std::string_view name;
  std::string_view owner;  // path of the object that has config[]
};
constexpr std::array<Kind, 3> kKinds{
    {{"ResourceClaim", "spec.devices"}, {"ResourceClaimTemplate", "spec.spec.devices"}, {"DeviceClass", "spec"}}};
constexpr std::string_view kList = "List";  // the end of a list's kind

std::string name_of(std::string_view kind, const json& metadata) {
  std::string name = text_of(metadata, "name");
  if (name.empty()) name = text_of(metadata, "generateName") + "*";
  const std::string in = text_of(metadata, "namespace");
  return printable(std::string(kind) + " " + (in.empty() ? name : in + "/" + name), 400);
}

void check_entry(const json& entry, const std::string& driver, const std::string& object, const std::string& path,
                 CheckedClaims& checked) {
  const json& opaque = member(entry, "opaque");
  if (const auto config = opaque_config(entry, driver)) {
    ++checked.configs;
    const auto refusal = refusal_of(*config);
    if (!refusal) return;
    checked.faults.push_back({ConfigFault::Kind::refused, object, path + ".opaque.parameters",
                              shown(member(opaque, "parameters"), kMaxValue), refusal->problem,
                              refusal->fix.empty() ? "see docs/dra.md#claims" : refusal->fix});
  } else if (const auto other = opaque_config(entry, text_of(opaque, "driver")); other && !refusal_of(*other)) {
    checked.faults.push_back(
        {ConfigFault::Kind::other_driver, object, path + ".opaque.driver", shown(member(opaque, "driver"), kMaxValue),
         "this configuration has no effect on " + driver, "set driver: " + driver + ", or give --dra-driver-name"});
  }
}

// `wish`: what a request asks for, or one of its alternatives. What it gets of a device of another class is not known.
void check_cores(const json& wish, const std::string& request, const std::string& driver, const std::string& object,
                 const std::string& path, CheckedClaims& checked) {
  const std::string of = text_of(wish, "deviceClassName");
  const json& amounts = member(member(wish, "capacity"), "requests");
  const json& cores = member(amounts, "cores");
  const auto count = cores == 0 ? std::optional<std::int64_t>(0) : kube::parse_quantity(text_of(amounts, "cores"));
  if ((of != driver && of != "core." + driver) || kube::is_true(wish, "adminAccess") || count != 0) return;
  const auto [problem, fix] = no_cores(request);
  checked.faults.push_back(
      {ConfigFault::Kind::refused, object, path + ".capacity.requests.cores", shown(cores, kMaxValue), problem, fix});
}

void check_requests(const json& devices, const std::string& driver, const std::string& object, const std::string& path,
                    CheckedClaims& checked) {
  const json& requests = list_of(devices, "requests");
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const json& request = requests[i];
    const std::string name = printable(text_of(request, "name")), at = path + "[" + std::to_string(i) + "]";
    const json& exactly = member(request, "exactly");  // v1beta1 has its fields in the request itself
    check_cores(exactly.is_object() ? exactly : request, name, driver, object,
                exactly.is_object() ? at + ".exactly" : at, checked);
    const json& alternatives = list_of(request, "firstAvailable");
    for (std::size_t j = 0; j < alternatives.size(); ++j) {
      check_cores(alternatives[j], name, driver, object, at + ".firstAvailable[" + std::to_string(j) + "]", checked);
    }
  }
}

// `kind`: of the object, where it says none itself, as in a typed list.
void check_object(const json& object, std::string kind, const std::string& driver, CheckedClaims& checked) {
  if (const std::string own = text_of(object, "kind"); !own.empty()) kind = own;
  if (kind.ends_with(kList)) {
    const std::string of = kind.substr(0, kind.size() - kList.size());
    for (const json& item : list_of(object, "items")) check_object(item, of, driver, checked);
  }
  const auto* const known = std::ranges::find(kKinds, std::string_view(kind), &Kind::name);
  if (known == kKinds.end()) return;
  ++checked.objects;
  const json* owner = &object;
  for (const std::string_view part : split(known->owner, '.')) owner = &member(*owner, part);
  const std::string name = name_of(kind, member(object, "metadata")), path(known->owner);
  check_requests(*owner, driver, name, path + ".requests", checked);
  const json& configs = list_of(*owner, "config");
  for (std::size_t i = 0; i < configs.size(); ++i) {
    check_entry(configs[i], driver, name, path + ".config[" + std::to_string(i) + "]", checked);
  }
}

// Takes the first object with its brackets off the front of `rest`; "" when none begins or ends there.
std::string_view take_object(std::string_view& rest) {
  std::size_t depth = 0;
  bool is_text = false;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const char letter = rest[i];
    if (letter == '"') is_text = !is_text;
    if (is_text && letter == '\\') ++i;
    if (!is_text && (letter == '{' || letter == '[')) ++depth;
    if (!is_text && (letter == '}' || letter == ']') && depth > 0 && --depth == 0) {
      const std::string_view object = rest.substr(0, i + 1);
      rest.remove_prefix(i + 1);
      return object;
    }
    if (depth == 0) break;
  }
  return "";
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

Result<CheckedClaims> check_claims(std::string_view text, const std::string& driver) {
  CheckedClaims checked;
  std::size_t number = 1;
  for (std::string_view rest = trim(text); !rest.empty(); rest = trim(rest), ++number) {
    const std::string_view object = take_object(rest);
    if (object.empty()) {
      return fail(ErrorCode::invalid_argument,
                  "not JSON; convert it with kubectl create --dry-run=client -o json -f FILE, or yq -o=json");
    }
    TRY_ASSIGN(const json parsed, kube::parse_object(object, "document " + std::to_string(number)));
    check_object(parsed, "", driver, checked);
  }
  return checked;
}

}  // namespace neuron::plugin::dra
