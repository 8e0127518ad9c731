#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/holdings/holding.h"
#include "agent/model/resource.h"
#include "agent/model/snapshot.h"
#include "agent/model/usage.h"

// The answer to a scrape, and its input: plain values, gathered beforehand by plugin/daemon/metrics_sources, so that
// making the text neither reads the machine nor waits. An empty optional is an unknown value; it has no sample.
namespace neuron::metrics {

// Identity of the machine, for the labels that neuron-monitor puts on every series. "" where unknown.
struct Instance {
  std::string name;               // the node's name
  std::string id;                 // "i-0123…": sys/devices/virtual/dmi/id/board_asset_tag of a Nitro instance
  std::string type;               // "trn1.32xlarge": sys/devices/virtual/dmi/id/product_name
  std::string availability_zone;  // of the node's label topology.kubernetes.io/zone, where the Node is read anyway
  std::string region;             // likewise topology.kubernetes.io/region
  std::string subnet_id;          // not available to a pod
  std::string ultraserver_id;     // model::HostScan's UltraServer; the label is left out where it is ""
};

// Durations counted into buckets, as Prometheus has them. bounds in seconds; counts are not cumulative; the last
// one, beyond bounds, is of all longer ones.
struct Durations {
  std::vector<double> bounds;
  std::vector<std::uint64_t> counts;
  double sum_seconds = 0;
};

// Counts of the process since it started. Names that can be listed are all there from the start, at 0: Prometheus sees
// no increase in a series that begins with its first event.
struct AgentFigures {
  std::string version;
  std::optional<double> start_time_seconds;  // of the process; Unix time
  std::uint64_t scans = 0;
  std::optional<double> last_scan_seconds;
  std::map<std::string, Durations> calls;              // by gRPC method, "Allocate"
  std::map<std::string, std::uint64_t> calls_failed;   // by gRPC method
  std::map<std::string, std::uint64_t> refusals;       // by reason: plugin/device/refusals.h; by claim an ErrorCode
  std::map<std::string, std::uint64_t> allocations;    // answers given, by resource name or driver name
  std::map<std::string, std::uint64_t> registrations;  // with the kubelet, by resource name or driver name
  std::map<std::string, bool> registered;              // now, by resource name or driver name
  std::map<std::string, std::uint64_t> api_calls;      // to the API server, by outcome: "ok", "error"
};

// Units of one resource as the kubelet sees them.
struct Offered {
  model::Resource resource{};
  int units = 0;    // in the list
  int healthy = 0;  // of them, shown as Healthy
  int held = 0;     // of them, held by containers through this resource; a held unit may be unhealthy
  int free = 0;     // of them, Healthy and not held
  // The largest request that GetPreferredAllocation could still meet with a shape that the runtime accepts; in units.
  std::optional<int> largest_request;
};

struct MetricsInput {
  model::SnapshotPtr snapshot;  // null before the first scan
  // The two newest samples, for rates; null before the first. The same one twice: no rates.
  std::shared_ptr<const model::UsageSample> before;
  std::shared_ptr<const model::UsageSample> now;
  // Age of the sample `now`, when this was gathered; without `now` the time since a sample was first requested;
  // nullopt: none was. Samples older than kOldestUsage (agent/metrics/families.h) are not used.
  std::optional<std::chrono::duration<double>> usage_age;
  // Holdings of the device plugin and of claims. Holding::shown_as is "namespace/pod/container"; "": not known yet.
  std::shared_ptr<const std::vector<holdings::Holding>> holdings;
  std::vector<Offered> offered;
  Instance instance;
  AgentFigures agent;
};

// Format of the answer to a scrape: Prometheus' text format 0.0.4, or OpenMetrics 1.0 on request.
enum class TextFormat { prometheus, openmetrics };

// All metrics of `input` (docs/metrics.md) as text. An unknown value has no sample; a family without samples is left
// out. Pure: reads no clock, file or locale; any thread.
[[nodiscard]] std::string render_metrics(const MetricsInput& input, TextFormat format);

// The header Content-Type that goes with the text.
[[nodiscard]] std::string_view content_type(TextFormat format);

// The format that a client prefers by its header Accept (RFC 9110, 12.5.1): OpenMetrics where the header names a
// supported version of it with a higher weight than plain text; else Prometheus' format, also for an empty or malformed
// header. `accept` is foreign. Pure.
[[nodiscard]] TextFormat format_for(std::string_view accept);

}  // namespace neuron::metrics
