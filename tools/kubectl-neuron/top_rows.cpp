#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "agent/base/parse.h"
#include "tools/kubectl-neuron/counts.h"
#include "tools/kubectl-neuron/top.h"

namespace neuron::fleet {
namespace {

// A row while it is added up.
struct Adding {
  TopRow row;
  std::set<std::string> nodes;
  std::set<std::string> pods;
  double percent_sum = 0;
  std::size_t percent_cores = 0;

  void add_core(const CoreUse& core, std::optional<std::uint64_t> share) {
    ++row.cores;
    if (core.percent) {
      percent_sum += *core.percent;
      ++percent_cores;
      if (*core.percent <= 0) ++row.idle_cores;
    }
    if (core.device_bytes) row.memory_bytes = row.memory_bytes.value_or(0) + *core.device_bytes;
    if (share) row.memory_size = row.memory_size.value_or(0) + *share;
  }

  void add_efa(const EfaUse& efa) {
    const auto add = [&](const char* counter, std::optional<double>& sum) {
      const auto found = efa.per_second.find(counter);
      if (found != efa.per_second.end()) sum = sum.value_or(0) + found->second;
    };
    add("rx_bytes", row.rx_bytes_per_second);
    add("tx_bytes", row.tx_bytes_per_second);
  }

  void add_health(const model::Health& health) {
    if (health.state == model::HealthState::unhealthy) ++row.unhealthy;
    if (health.state == model::HealthState::degraded) ++row.degraded;
    if (health.state == model::HealthState::unknown && model::is_assessed(health)) ++row.degraded;
  }

  [[nodiscard]] TopRow finished() {
    row.nodes = nodes.size();
    row.pods = pods.size();
    if (percent_cores > 0) row.percent = percent_sum / static_cast<double>(percent_cores);
    return std::move(row);
  }
};

std::string pod_key(const report::PodUse& use) {
  return printable(use.pod_namespace) + '/' + printable(use.pod);
}

class Rows {
 public:
  Rows(const Fleet& fleet, const Usages& usages) : fleet_(fleet), usages_(usages) {}

  Top run() {
    for (const Node& node : fleet_.nodes) {
      if (has_hardware(node)) add(node);
    }
    Top top;
    top.read_at = printable(fleet_.read_at);
    for (const std::string& sentence : fleet_.unknown) top.unknown.push_back(printable(sentence, kLongest));
    top.nodes = finished(nodes_);
    top.namespaces = finished(namespaces_);
    top.pods = finished(pods_);
    top.is_partial = !fleet_.nodes_unread.empty();
    sum_.row.name = "all";
    sum_.row.has_report = std::ranges::any_of(top.nodes, &TopRow::has_report) || has_none(top);
    sum_.row.holders_known = std::ranges::any_of(top.nodes, &TopRow::holders_known) || has_none(top);
    top.sum = sum_.finished();
    return top;
  }

 private:
  static constexpr std::size_t kLongest = 300;

  // Those to whom a unit of the node counts: all, the node, and its holder.
  using Targets = std::vector<Adding*>;

  static bool has_none(const Top& top) { return top.nodes.empty() && !top.is_partial; }

  static std::vector<TopRow> finished(std::map<std::string, Adding>& rows) {
    std::vector<TopRow> done;
    done.reserve(rows.size());
    for (auto& [name, row] : rows) done.push_back(row.finished());
    return done;
  }

  Adding& row_of(std::map<std::string, Adding>& rows, const std::string& name) {
    Adding& adding = rows[name];
    adding.row.name = name;
    return adding;
  }

  void add(const Node& node) {
    const std::string name = printable(node.name, kLongest);
    Adding& of_node = row_of(nodes_, name);
    of_node.row.node = node.name;
    of_node.row.instance_type = printable(node.instance_type);
    of_node.nodes.insert(name);
    sum_.nodes.insert(name);
    if (node.ready == false) {
      of_node.row.condition = "not ready";
    } else if (node.unschedulable) {
      of_node.row.condition = "cordoned";
    }
    of_node.row.has_report = node.report.has_value();
    of_node.row.holders_known = node.report && node.report->pods;
    if (node.report && !node.report->pods && of_node.row.condition.empty()) of_node.row.condition = "holders unknown";
    if (!node.report) {
      of_node.row.condition = "no report: " + printable(node.report_missing, kLongest);
      return;
    }
    const auto usage = usages_.find(node.name);
    const NodeUsage none;
    add_hardware(node, of_node, usage == usages_.end() ? none : usage->second);
  }

  // The pod and its namespace, counted as users of this node.
  Targets holder_targets(const Node& node, const report::PodUse& use, Adding& of_node) {
    const std::string name = pod_key(use);
    Adding& of_pod = row_of(pods_, name);
    of_pod.row.node = node.name;
    Adding& of_namespace = row_of(namespaces_, printable(use.pod_namespace));
    Targets targets = {&sum_, &of_node, &of_namespace, &of_pod};
    for (Adding* target : targets) {
      target->pods.insert(name);
      target->nodes.insert(printable(node.name, kLongest));
    }
    return targets;
  }

  void add_hardware(const Node& node, Adding& of_node, const NodeUsage& usage) {
    const report::NodeReport& report = *node.report;
    std::map<int, Targets> cores;
    std::map<int, std::set<Adding*>> devices;
    std::map<std::string, Targets> efas;
    for (std::size_t i = 0; report.pods && i < report.pods->size(); ++i) {
      const report::PodUse& use = (*report.pods)[i];
      const Targets targets = holder_targets(node, use, of_node);
      for (const int core : use.cores) cores.emplace(core, targets);
      for (const int device : use.devices) devices[device].insert(targets.begin(), targets.end());
      for (const std::string& efa : use.efas) efas.emplace(efa, targets);
    }
    for (std::size_t i = 0; i < report.host.devices.size(); ++i) {
      const model::NeuronDevice& device = report.host.devices[i];
      for (Adding* target : {&sum_, &of_node}) {
        ++target->row.all_devices;
        target->add_health(device.health);
      }
      for (Adding* target : devices[device.index]) {
        ++target->row.devices;
        if (target != &sum_ && target != &of_node) target->add_health(device.health);
      }
      if (i < report.core_ids.size()) add_cores(report.core_ids[i], device, cores, of_node, usage);
    }
    add_efas(report, efas, of_node, usage);
  }

  void add_cores(const std::vector<int>& ids, const model::NeuronDevice& device, std::map<int, Targets>& holders,
                 Adding& of_node, const NodeUsage& usage) {
    std::optional<std::uint64_t> share;
    if (device.memory_bytes && !ids.empty()) share = *device.memory_bytes / ids.size();
    for (const int id : ids) {
      ++sum_.row.all_cores;
      ++of_node.row.all_cores;
      const auto holder = holders.find(id);
      if (holder == holders.end()) continue;
      const auto use = usage.cores.find(id);
      const CoreUse none;
      for (Adding* target : holder->second) target->add_core(use == usage.cores.end() ? none : use->second, share);
    }
  }

  void add_efas(const report::NodeReport& report, std::map<std::string, Targets>& holders, Adding& of_node,
                const NodeUsage& usage) {
    for (const model::EfaInterface& efa : report.host.efas) {
      const auto use = usage.efas.find(efa.name);
      const auto holder = holders.find(efa.name);
      Targets targets = {&sum_, &of_node};
      for (Adding* target : targets) target->add_health(efa.health);
      if (holder != holders.end()) {
        targets = holder->second;
        for (Adding* target : targets) ++target->row.efas;
      }
      for (Adding* target : targets) {
        if (use != usage.efas.end()) target->add_efa(use->second);
      }
    }
  }

  const Fleet& fleet_;
  const Usages& usages_;
  std::map<std::string, Adding> nodes_, namespaces_, pods_;
  Adding sum_;
};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool has(const std::string& text, const std::string& part) {
  return lower(text).find(part) != std::string::npos;
}

bool before(const TopRow& a, const TopRow& b, TopSort sort) {
  if (sort == TopSort::utilization) return a.percent.value_or(-1) > b.percent.value_or(-1);
  if (sort == TopSort::memory) return a.memory_bytes.value_or(0) > b.memory_bytes.value_or(0);
  if (sort == TopSort::devices) return std::pair(a.devices, a.cores) > std::pair(b.devices, b.cores);
  if (sort == TopSort::health) {
    const auto badness = [](const TopRow& row) {
      return std::tuple(row.unhealthy, !row.condition.empty(), row.degraded);
    };
    return badness(a) > badness(b);
  }
  return false;
}

constexpr std::array<std::string_view, 3> kBy = {"node", "namespace", "pod"};
constexpr std::array<std::string_view, kTopSorts> kSorts = {"name", "utilization", "memory", "devices", "health"};

}  // namespace

Usages usages_of(const Documents& documents, double read_at) {
  Usages usages;
  for (const auto& [node, answer] : documents.agents) {
    if (answer.metrics.empty()) continue;
    NodeUsage& usage = usages[node];
    usage = parse_usage(answer.metrics);
    usage.read_at = read_at;
  }
  return usages;
}

void add_rates(const Usages& before, Usages& now) {
  for (auto& [node, usage] : now) {
    const auto old = before.find(node);
    if (old != before.end()) add_rates(old->second, usage);
  }
}

Top make_top(const Fleet& fleet, const Usages& usages) {
  return Rows(fleet, usages).run();
}

std::string_view to_string(TopBy by) {
  return kBy.at(static_cast<std::size_t>(by));
}

std::string_view to_string(TopSort sort) {
  return kSorts.at(static_cast<std::size_t>(sort));
}

std::optional<TopBy> parse_top_by(std::string_view text) {
  const auto found = std::ranges::find(kBy, text);
  if (found == kBy.end()) return std::nullopt;
  return static_cast<TopBy>(found - kBy.begin());
}

std::optional<TopSort> parse_top_sort(std::string_view text) {
  const auto found = std::ranges::find(kSorts, text);
  if (found == kSorts.end()) return std::nullopt;
  return static_cast<TopSort>(found - kSorts.begin());
}

std::vector<const TopRow*> shown_rows(const Top& top, TopBy by, TopSort sort, const std::string& filter) {
  const auto& rows = by == TopBy::node ? top.nodes : by == TopBy::pod ? top.pods : top.namespaces;
  std::vector<const TopRow*> shown;
  for (const TopRow& row : rows) {
    const bool passes = filter.empty() || has(row.name, filter) || has(row.node, filter) ||
                        has(row.instance_type, filter) || has(row.condition, filter);
    if (passes) shown.push_back(&row);
  }
  std::ranges::stable_sort(shown, [sort](const TopRow* a, const TopRow* b) { return before(*a, *b, sort); });
  return shown;
}

}  // namespace neuron::fleet
