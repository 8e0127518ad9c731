#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/kubectl-neuron/documents.h"
#include "tools/kubectl-neuron/fleet.h"
#include "tools/kubectl-neuron/node_usage.h"
#include "tools/screen/view_model.h"

// Contents of `kubectl neuron top`: use of the fleet, by user. Pure.
namespace neuron::fleet {

using Usages = std::map<std::string, NodeUsage>;  // by node name

// The usages of the agents that answered, with `read_at` (seconds of any steady clock).
[[nodiscard]] Usages usages_of(const Documents& documents, double read_at);
// add_rates() of each agent.
void add_rates(const Usages& before, Usages& now);

// A node, namespace or pod, or the sum of all. An empty optional is unknown.
struct TopRow {
  std::string name;           // "training/llama-0" of a pod
  std::string node;           // of a node itself, and of a pod
  std::string instance_type;  // of a node
  std::size_t nodes = 0;
  std::size_t pods = 0;
  std::size_t devices = 0;  // held, wholly or in part; of a pod or namespace those that it holds
  std::size_t all_devices = 0;
  std::size_t cores = 0;  // logical, held
  std::size_t all_cores = 0;
  std::size_t idle_cores = 0;                 // held, and not busy at all
  std::size_t efas = 0;                       // held
  std::optional<double> percent;              // mean of the held cores with a known utilization
  std::optional<std::uint64_t> memory_bytes;  // of devices, of the held cores
  std::optional<std::uint64_t> memory_size;   // of devices, their share
  std::optional<double> rx_bytes_per_second, tx_bytes_per_second;
  std::size_t unhealthy = 0;  // devices and interfaces; of a pod or namespace those that it holds
  std::size_t degraded = 0;   // and of unknown health
  bool holders_known = true;  // likewise: the agent said who holds it; else the counts of held units mean nothing
  bool has_report = true;     // of a node, or of any node of a sum; else nothing of its hardware is known
  std::string condition;      // "not ready", "cordoned", "holders unknown", "no report: <why>"; "" else
};

struct Top {
  std::vector<TopRow> nodes;       // with hardware, by name
  std::vector<TopRow> namespaces;  // that hold hardware
  std::vector<TopRow> pods;
  TopRow sum;
  std::string read_at;               // RFC 3339
  std::vector<std::string> unknown;  // sentences
  bool is_partial = false;           // nodes could not be read, or not all
};

[[nodiscard]] Top make_top(const Fleet& fleet, const Usages& usages);

enum class TopBy { node, name_space, pod };
enum class TopSort { name, utilization, memory, devices, health };
inline constexpr std::size_t kTopSorts = 5;
[[nodiscard]] std::string_view to_string(TopBy by);      // "node", "namespace", "pod"
[[nodiscard]] std::string_view to_string(TopSort sort);  // "name", "utilization", …
[[nodiscard]] std::optional<TopBy> parse_top_by(std::string_view text);
[[nodiscard]] std::optional<TopSort> parse_top_sort(std::string_view text);

// Those whose name, node, type or condition has `filter` (lower case), in order. They live as long as `top`.
[[nodiscard]] std::vector<const TopRow*> shown_rows(const Top& top, TopBy by, TopSort sort, const std::string& filter);

inline constexpr const char* kTopFormat = "kubectl-neuron-top/1";

// One line: sums, and all rows of the three kinds that pass the filter. `time_ms`: wall clock, since 1970.
[[nodiscard]] std::string top_json(const Top& top, TopSort sort, const std::string& filter, std::int64_t time_ms);

// One node as neuron-top shows a machine; without the values that only the machine itself has.
[[nodiscard]] screen::ViewModel node_view(const Node& node, const NodeUsage& usage);

}  // namespace neuron::fleet
