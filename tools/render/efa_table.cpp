#include "tools/render/efa_table.h"

#include <algorithm>

#include "agent/base/parse.h"
#include "tools/render/device_table.h"
#include "tools/render/text_table.h"

namespace neuron::render {
namespace {

constexpr const char* kUnknown = "NA";
constexpr const char* kNone = "-";

std::string or_none(std::string text) {
  return text.empty() ? kNone : std::move(text);
}

template <typename Texts>
std::string joined(const Texts& texts) {
  std::string whole;
  for (const std::string& text : texts) whole += (whole.empty() ? "" : ", ") + text;
  return or_none(std::move(whole));
}

std::string ranges(const std::set<int>& values) {
  return or_none(format_int_list({values.begin(), values.end()}));
}

std::string verbs_text(const model::EfaInterface& efa) {
  if (!efa.uverbs) return kNone;
  return efa.node_present ? *efa.uverbs : *efa.uverbs + " (no node)";
}

bool shows_health(const NodeReport& report) {
  return std::any_of(report.host.efas.begin(), report.host.efas.end(),
                     [](const model::EfaInterface& efa) { return is_assessed(efa.health); });
}

TextTable::Row efa_row(const NodeReport& report, std::size_t position) {
  const model::EfaInterface& efa = report.host.efas[position];
  TextTable::Row row = {efa.driver_bound ? or_none(efa.name) : "(no driver)",
                        verbs_text(efa),
                        model::to_string(efa.bdf),
                        efa.numa_node ? std::to_string(*efa.numa_node) : kUnknown,
                        efa.p2p ? or_none(*efa.p2p) : kUnknown,
                        or_none(format_int_list(near_devices(report, position)))};
  if (shows_health(report)) {
    row.emplace_back(is_assessed(efa.health) ? model::to_string(efa.health.state) : std::string_view(kUnknown));
  }
  if (report.pods) row.push_back(joined(pods_on_efa(report, efa.name).value_or(std::vector<std::string>{})));
  return row;
}

}  // namespace

std::string efa_table(const NodeReport& report, ColourDepth colour) {
  if (report.host.efas.empty()) return "No EFA interface.\n";
  std::vector<TextTable::Header> headers = {{"EFA", "INTERFACE"}, {"VERBS", "DEVICE"}, {"PCI", "BDF"},
                                            {"NUMA", "NODE"},     {"PEER", "MEMORY"},  {"NEAREST", "DEVICES"}};
  const std::size_t health_column = headers.size();
  if (shows_health(report)) headers.push_back({"HEALTH", ""});
  if (report.pods) headers.push_back({"POD", ""});
  TextTable table(std::move(headers));
  if (shows_health(report)) table.paint_column(health_column, role_of_health);
  for (std::size_t i = 0; i < report.host.efas.size(); ++i) table.add_group({efa_row(report, i)});
  return table.to_string(colour);
}

std::string pod_table(const NodeReport& report) {
  if (!report.pods) return "";
  if (report.pods->empty()) return "No pod holds a device, a core or an interface.\n";
  const bool with_claims =
      std::any_of(report.pods->begin(), report.pods->end(), [](const PodUse& use) { return !use.claim.empty(); });
  std::vector<TextTable::Header> headers = {{"NAMESPACE", ""}, {"POD", ""}, {"CONTAINER", ""}};
  if (with_claims) headers.push_back({"CLAIM", ""});
  headers.insert(headers.end(), {{"NEURON", "DEVICES"}, {"NEURON", "CORE IDS"}, {"EFA", "INTERFACES"}});
  TextTable table(std::move(headers));
  for (const PodUse& use : *report.pods) {
    TextTable::Row row = {use.pod_namespace, use.pod, use.container};
    if (with_claims) row.push_back(or_none(use.claim));
    row.insert(row.end(), {ranges(use.devices), ranges(use.cores), joined(use.efas)});
    table.add_group({std::move(row)});
  }
  return table.to_string();
}

}  // namespace neuron::render
