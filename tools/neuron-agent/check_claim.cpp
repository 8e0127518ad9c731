// The check of claims before they are made: `neuron-agent check --claim`.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "plugin/dra/claim/claim_config.h"
#include "tools/neuron-agent/reports.h"

namespace neuron::agent {
namespace {

using kube::list_of;
using kube::member;
using kube::text_of;
using nlohmann::json;
using plugin::dra::opaque_config;
using plugin::dra::refusal_of;
using preflight::Severity;

const ReportWords kWords = {.schema = kCheckSchema,
                            .work = "reading the claims",
                            .may_hang = "pass a smaller file, or a pipe that ends",
                            .killed = "the check",
                            .output = "the report",
                            .most_output = std::size_t{256} << 20U};

constexpr std::size_t kMaxBytes = std::size_t{32} << 20U;  // all claims of a large cluster
constexpr std::size_t kMaxValue = 120;
constexpr std::string_view kList = "List";  // the end of a list's kind
constexpr std::string_view kGroup = "resource.k8s.io/";

struct Kind {
  std::string_view name;
  std::string_view owner;  // path of the object that has config[] and requests[]
};
constexpr std::array<Kind, 3> kKinds{
    {{"ResourceClaim", "spec.devices"}, {"ResourceClaimTemplate", "spec.spec.devices"}, {"DeviceClass", "spec"}}};

std::string shown(const json& value) {
  return printable(value.dump(-1, ' ', false, json::error_handler_t::replace), kMaxValue);
}

std::string name_of(std::string_view kind, const json& metadata) {
  std::string name = text_of(metadata, "name");
  if (name.empty()) name = text_of(metadata, "generateName") + "*";
  const std::string in = text_of(metadata, "namespace");
  return printable(std::string(kind) + " " + (in.empty() ? name : in + "/" + name), 400);
}

std::string indexed(const std::string& path, std::size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

// Checks objects one after another.
class Checker {
 public:
  explicit Checker(const std::string& driver) : driver_(driver) {}

  // `kind` and `version`: of the object, where it says none itself, as in a typed list.
  void check(const json& object, std::string kind, std::string version) {
    if (const std::string own = text_of(object, "kind"); !own.empty()) kind = own;
    if (const std::string own = text_of(object, "apiVersion"); !own.empty()) version = own;
    if (kind.ends_with(kList)) {
      const std::string of = kind.substr(0, kind.size() - kList.size());
      for (const json& item : list_of(object, "items")) check(item, of, of.empty() ? "" : version);
    }
    const auto* const known = std::ranges::find(kKinds, std::string_view(kind), &Kind::name);
    if (known == kKinds.end()) return;
    object_ = name_of(kind, member(object, "metadata"));
    if (!version.empty() && !version.starts_with(kGroup)) {
      add("not_checked", Severity::info, "apiVersion", version, "skipped: another API group's " + kind,
          "nothing, unless apiVersion should be " + std::string(kGroup) + "v1");
      return;
    }
    ++found_.objects;
    check_body(object, *known);
  }

  CheckedClaims take() { return std::move(found_); }

 private:
  void add(std::string_view code, Severity severity, std::string path, const json& value, const std::string& problem,
           std::string fix) {
    found_.findings.push_back({std::string(code),
                               severity,
                               object_ + ": " + problem,
                               {{std::move(path), shown(value)}},
                               std::move(fix),
                               {object_}});
  }
  void refused(std::string path, const json& value, const std::string& problem, std::string fix) {
    add("config_refused", Severity::error, std::move(path), value, problem, std::move(fix));
  }
  void malformed(std::string path, const json& value, const std::string& problem, std::string fix) {
    add("claim_malformed", Severity::error, std::move(path), value, problem, std::move(fix));
  }

  void check_body(const json& object, const Kind& kind) {
    const json* owner = &object;
    std::string path;
    for (const std::string_view part : split(kind.owner, '.')) {
      const json& inner = member(*owner, part);
      path += (path.empty() ? "" : ".") + std::string(part);
      if (!inner.is_object() && (part == "spec" || !inner.is_null())) {
        malformed(path, inner, path + (inner.is_null() ? " is missing" : " is no object"),
                  "a " + std::string(kind.name) + " has " + std::string(kind.owner));
        return;
      }
      const bool is_claim = kind.owner == "spec.devices";
      if (is_claim && part == "spec" && inner.contains("spec")) {
        malformed("spec.spec", inner["spec"], "spec.spec is of a template", "set kind: ResourceClaimTemplate");
      }
      owner = &inner;
    }
    check_requests(*owner, path + ".requests");
    const json& configs = member(*owner, "config");
    if (!configs.is_array() && !configs.is_null()) {
      malformed(path + ".config", configs, "config is no list", "begin each of its entries with a -");
    }
    for (std::size_t i = 0; i < list_of(*owner, "config").size(); ++i) {
      check_config(configs[i], indexed(path + ".config", i));
    }
  }

  void check_config(const json& entry, const std::string& path) {
    const json& opaque = member(entry, "opaque");
    if (const auto config = opaque_config(entry, driver_)) {
      ++found_.configs;
      const auto refusal = refusal_of(*config);
      if (!refusal) return;
      refused(path + ".opaque.parameters", member(opaque, "parameters"), refusal->problem,
              refusal->fix.empty() ? "see docs/dra.md#claims" : refusal->fix);
    } else if (const auto other = opaque_config(entry, text_of(opaque, "driver")); other && !refusal_of(*other)) {
      add("config_of_other_driver", Severity::warning, path + ".opaque.driver", member(opaque, "driver"),
          "this configuration has no effect on " + driver_, "set driver: " + driver_ + ", or give --dra-driver-name");
    }
  }

  void check_requests(const json& owner, const std::string& path) {
    const json& requests = member(owner, "requests");
    if (!requests.is_array()) {
      if (!requests.is_null()) malformed(path, requests, "requests is no list", "begin each of its entries with a -");
      return;
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const json& request = requests[i];
      const std::string name = printable(text_of(request, "name")), at = indexed(path, i);
      const json& exactly = member(request, "exactly");  // v1beta1 has its fields in the request itself
      check_wish(exactly.is_object() ? exactly : request, name, exactly.is_object() ? at + ".exactly" : at);
      const json& alternatives = list_of(request, "firstAvailable");
      for (std::size_t j = 0; j < alternatives.size(); ++j) {
        check_wish(alternatives[j], name, indexed(at + ".firstAvailable", j));
      }
    }
  }

  // `wish`: what a request asks for, or one of its alternatives.
  void check_wish(const json& wish, const std::string& request, const std::string& path) {
    const json& amounts = member(member(wish, "capacity"), "requests");
    if (!amounts.is_object()) return;
    const std::string of = text_of(wish, "deviceClassName");
    for (const auto& [name, value] : amounts.items()) {
      const std::string at = path + ".capacity.requests." + printable(name, kMaxValue);
      const auto amount = thousandths_of(value);
      if (!amount) {
        malformed(at, value, "the request \"" + request + "\" has an amount that is no quantity",
                  "a whole number, as in cores: 1");
      } else {
        check_amount(wish, of, {name, *amount}, request, at, value);
      }
    }
  }

  // A null is 0, as the API server reads it.
  static std::optional<std::int64_t> thousandths_of(const json& value) {
    if (value.is_null()) return 0;
    if (value.is_string()) return kube::parse_thousandths(trim(value.get_ref<const std::string&>()));
    return value.is_number() ? kube::parse_thousandths(value.dump()) : std::nullopt;
  }

  // What a request gets of a device of another class is not known here.
  void check_amount(const json& wish, const std::string& of, const std::pair<std::string, std::int64_t>& amount,
                    const std::string& request, const std::string& at, const json& value) {
    const auto& [name, thousandths] = amount;
    const bool has_cores = of == driver_ || of == "core." + driver_;
    const bool is_group = of == "group." + driver_;
    if (has_cores && name == "cores" && thousandths <= 0 && !kube::is_true(wish, "adminAccess")) {
      const auto [problem, fix] = plugin::dra::no_cores(request);
      refused(at, value, problem, fix);
      return;
    }
    const bool is_known = name == "cores" || name == "memory";
    if (!has_cores && !is_group && of != "efa." + driver_) return;
    if (is_known && (has_cores || is_group)) return;
    add("never_scheduled", Severity::warning, at, value,
        "the request \"" + request + "\" is never scheduled: devices of " + of + " have no capacity of this name",
        has_cores || is_group ? "request cores or memory" : "remove the capacity: an interface is given whole");
  }

  std::string driver_;
  std::string object_;  // that is checked: "ResourceClaim default/c"
  CheckedClaims found_;
};

// Links and pipes too, such as those of a shell's <(...). `input`: standard input, which a child process does not have.
Result<std::string> read_text(const std::string& path, const Fd& input) {
  if (path == "-" || path == "/dev/stdin") return read_all(input.get(), kMaxBytes, "standard input");
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file.valid()) return fail(error_from_errno(errno, path));
  return read_all(file.get(), kMaxBytes, path);
}

Report make_report(const Options& options, const Fd& input) {
  const std::string path = options.claim.value_or(""), &driver = options.dra.pool.driver;
  const auto text = read_text(path, input);
  if (!text) return cannot_tell(text.error().message);
  auto checked = check_claims(*text, driver);
  const std::string name = path == "-" ? "standard input" : path;
  if (!checked) return cannot_tell(name + ": " + checked.error().message);
  if (checked->objects == 0) {
    const auto& skipped = checked->findings;
    return cannot_tell(name + ": no ResourceClaim, ResourceClaimTemplate or DeviceClass" +
                       (skipped.empty() ? "" : " of resource.k8s.io; " + skipped.front().sentence));
  }
  std::ranges::stable_sort(checked->findings, {}, &preflight::Finding::severity);
  const std::string examined =
      counted(checked->objects, "object") + ", " + counted(checked->configs, "configuration") + " for " + driver;
  return report_findings(checked->findings, examined, nullptr, options.output);
}

}  // namespace

Result<CheckedClaims> check_claims(std::string_view text, const std::string& driver) {
  TRY_ASSIGN(const auto objects, kube::read_documents(text));
  Checker checker(driver);
  for (const json& object : objects) checker.check(object, "", "");
  return checker.take();
}

Report check_claim(const Options& options) {
  const Fd input(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  return report_in_child(options, kWords, [&] { return make_report(options, input); });
}

}  // namespace neuron::agent
