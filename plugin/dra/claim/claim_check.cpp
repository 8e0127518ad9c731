#include "plugin/dra/claim/claim_check.h"

#include <algorithm>
#include <array>
#include <utility>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "plugin/dra/claim/claim_grant.h"
#include "plugin/dra/claim/claim_shares.h"

namespace neuron::plugin::dra {
namespace {

using kube::list_of;
using kube::member;
using kube::text_of;
using nlohmann::json;

struct Kind {
  std::string_view name;
  std::string_view owner;  // path of the object that has config[]
};
constexpr std::array<Kind, 3> kKinds{
    {{"ResourceClaim", "spec.devices"}, {"ResourceClaimTemplate", "spec.spec.devices"}, {"DeviceClass", "spec"}}};
constexpr std::string_view kList = "List";  // the end of a list's kind

std::string shown(const json& value) {
  return printable(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

std::string name_of(std::string_view kind, const json& metadata) {
  std::string name = text_of(metadata, "name");
  if (name.empty()) name = text_of(metadata, "generateName") + "*";
  const std::string in = text_of(metadata, "namespace");
  return printable(std::string(kind) + " " + (in.empty() ? name : in + "/" + name), 400);
}

// Adds problem and fix of a message, in which the fix comes after the last "; ".
ConfigFault with_advice(ConfigFault fault, const std::string& message) {
  const std::size_t end = message.rfind("; ");
  fault.problem = message.substr(0, end);
  fault.fix = end == std::string::npos ? "see docs/dra.md#claims" : message.substr(end + 2);
  return fault;
}

void check_entry(const json& entry, const std::string& driver, const std::string& object, const std::string& path,
                 CheckedClaims& checked) {
  const json& opaque = member(entry, "opaque");
  if (const auto config = opaque_config(entry, driver)) {
    ++checked.configs;
    const auto read = config_for({*config}, "");
    if (read) return;
    ConfigFault fault{ConfigFault::Kind::refused,          object, path + ".opaque.parameters",
                      shown(member(opaque, "parameters")), "",     ""};
    checked.faults.push_back(with_advice(std::move(fault), read.error().message));
  } else if (const auto other = opaque_config(entry, text_of(opaque, "driver")); other && config_for({*other}, "")) {
    checked.faults.push_back({ConfigFault::Kind::other_driver, object, path + ".opaque.driver",
                              shown(member(opaque, "driver")), "this configuration has no effect on " + driver,
                              "set driver: " + driver + ", or give --dra-driver-name"});
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
  ConfigFault fault{ConfigFault::Kind::refused, object, path + ".capacity.requests.cores", shown(cores), "", ""};
  checked.faults.push_back(with_advice(std::move(fault), no_cores(request).message));
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
