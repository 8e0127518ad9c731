#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "agent/base/parse.h"
#include "agent/health/reasons.h"
#include "agent/report/node_report.h"
#include "tools/kubectl-neuron/node_usage.h"
#include "tools/kubectl-neuron/replacements.h"

namespace neuron::fleet {
namespace {

// The agent's reasons are a table; others are foreign.
void hide_names(model::Health& one) {
  const auto all = health::all_reasons();
  const auto known = std::ranges::find(all, one.reason, &health::Reason::code);
  if (known != all.end()) {
    one.action = known->action;
  } else if (!one.reason.empty()) {
    one.reason = "removed";
  }
}

void hide_words(model::Health& one, const Replacements& names) {
  one.sentence = names.in_sentence(one.sentence);
  const auto all = health::all_reasons();
  if (std::ranges::find(all, one.reason, &health::Reason::code) == all.end())
    one.action = names.in_sentence(one.action);
}

void hide_words(std::vector<model::ReadProblem>& problems, const Replacements& names) {
  for (model::ReadProblem& problem : problems) problem.detail = names.in_sentence(problem.detail);
}

void hide_names(report::PodUse& use, Replacements& names) {
  use.pod_namespace = names.of("namespace", use.pod_namespace);
  use.pod = names.of("pod", use.pod);
  use.container = names.of("container", use.container);
  use.claim = names.of("claim", use.claim);
  std::set<std::string> efas;
  for (const std::string& efa : use.efas) efas.insert(names.of_interface(efa));
  use.efas = std::move(efas);
}

void hide_names(model::EfaInterface& efa, Replacements& names) {
  efa.name = names.of_interface(efa.name);
  if (!is_pci_place(efa.switch_key)) efa.switch_key = names.of("parent", efa.switch_key);
  if (efa.uverbs && !is_verbs_name(*efa.uverbs)) efa.uverbs = names.of("verbs", *efa.uverbs);
  if (efa.p2p && *efa.p2p != "NEURON" && *efa.p2p != "NVIDIA") efa.p2p = names.of("peer", *efa.p2p);
  hide_names(efa.health);
}

void hide_names(report::NodeReport& report, Replacements& names) {
  model::HostScan& host = report.host;
  host.instance_id = names.of("instance", host.instance_id);
  if (!is_instance_type(host.instance_type)) host.instance_type = names.of("type", host.instance_type);
  host.driver_version = public_version(host.driver_version);
  host.efa_driver_version = public_version(host.efa_driver_version);
  hide_names(host.kernel_log.node_health);
  hide_names(report.missing_health);
  for (model::NeuronDevice& device : host.devices) {
    if (device.serial) device.serial = names.of_serial(*device.serial);
    if (!is_architecture(device.arch)) device.arch = names.of("arch", device.arch);
    hide_names(device.health);
  }
  for (model::EfaInterface& efa : host.efas) hide_names(efa, names);
  report.commands.clear();
  if (!report.pods) return;
  for (report::PodUse& use : *report.pods) hide_names(use, names);
}

void hide_words(report::NodeReport& report, const Replacements& names) {
  model::HostScan& host = report.host;
  hide_words(host.problems, names);
  hide_words(host.kernel_log.node_health, names);
  hide_words(report.missing_health, names);
  for (model::NeuronDevice& device : host.devices) {
    hide_words(device.problems, names);
    hide_words(device.health, names);
    if (!device.signals.unhealthy_components) continue;
    for (std::string& one : *device.signals.unhealthy_components) one = names.in_sentence(one);
  }
  for (model::EfaInterface& efa : host.efas) {
    hide_words(efa.problems, names);
    hide_words(efa.health, names);
  }
}

// Values of labels that the agent's metrics have.
bool is_metric_kind(std::string_view text) {
  constexpr std::array<std::string_view, 11> kKinds = {"neuron_device",
                                                       "host",
                                                       "min",
                                                       "max",
                                                       "avg",
                                                       "mem_ecc_corrected",
                                                       "mem_ecc_uncorrected",
                                                       "sram_ecc_corrected",
                                                       "sram_ecc_uncorrected",
                                                       "user",
                                                       "system"};
  if (std::ranges::find(kKinds, text) != kKinds.end()) return true;
  for (std::size_t i = 0; i < model::kHostMemoryKinds; ++i) {
    if (to_string(static_cast<model::HostMemoryKind>(i)) == text) return true;
  }
  return false;
}

// A line of kept_metrics(), `name{label="value",…} number`; "" where it has a value that is not known.
std::string anonymous_line(std::string_view line, Replacements& names) {
  std::string out;
  while (true) {
    const std::size_t begin = line.find("=\"");
    if (begin == std::string_view::npos) break;
    const std::size_t end = line.find('"', begin + 2);
    if (end == std::string_view::npos) return "";
    const std::string value(line.substr(begin + 2, end - begin - 2));
    const bool is_interface = line.substr(0, begin).ends_with("{device");
    if (!is_interface && !is_digits(value) && !is_metric_kind(value)) return "";
    out.append(line.substr(0, begin + 2)).append(is_interface ? names.of_interface(value) : value).append("\"");
    line.remove_prefix(end + 1);
  }
  return out.append(line).append("\n");
}

std::string anonymous_metrics(const std::string& text, Replacements& names) {
  const std::string kept = kept_metrics(text);
  std::string_view rest = kept;
  std::string out;
  while (!rest.empty()) {
    const std::string_view line = take_until(rest, '\n');
    if (!line.empty()) out += anonymous_line(line, names);
  }
  return out;
}

}  // namespace

std::string public_version(std::string_view version) {
  return std::string(version.substr(0, std::min(version.find_first_not_of("0123456789."), version.size())));
}

std::string public_image(std::string_view image) {
  const std::string_view text = image.substr(0, image.find('@'));
  const std::size_t colon = text.rfind(':');
  std::string shown = "neuron-agent";
  if (colon == std::string_view::npos || text.find('/', colon) != std::string_view::npos) return shown;
  const std::string_view tag = text.substr(colon);
  return tag.find_first_not_of(":v0123456789.") == std::string_view::npos ? shown + std::string(tag) : shown;
}

void anonymise_report(AgentAnswer& answer, bool is_last, Replacements& names) {
  if (!is_last) answer.metrics = anonymous_metrics(answer.metrics, names);
  if (answer.body.empty()) return;
  auto report = report::parse_node_report(answer.body);
  if (!report) {
    answer.body.clear();
    answer.missing = "the agent's answer is not understood";
    return;
  }
  if (is_last) {
    hide_words(*report, names);
  } else {
    hide_names(*report, names);
  }
  answer.body = node_report_json(*report, report::JsonLayout::one_line);
}

}  // namespace neuron::fleet
