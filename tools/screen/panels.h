#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/screen/table.h"
#include "tools/screen/view_model.h"
#include "tools/screen/view_state.h"

// The lower part of the screen, one table per panel. Pure functions.
namespace neuron::screen {

// The last values of the sparklines, one per sample, oldest first. Bounded: kLength values of at most kSeries series. A
// value that was not known keeps its place. One thread.
class History {
 public:
  static constexpr std::size_t kLength = 240;
  static constexpr std::size_t kSeries = 160;  // 64 devices, 64 interfaces and the sums

  void add(const ViewModel& model);

  // Empty when there is no such series. Valid until the next add().
  [[nodiscard]] std::span<const std::optional<double>> of(const std::string& series) const;

 private:
  using Values = std::map<std::string, std::optional<double>>;
  [[nodiscard]] static Values values_of(const ViewModel& model);

  std::map<std::string, std::vector<std::optional<double>>> series_;
};

// Names of the series. Per cent, bytes, or bytes per second.
inline constexpr const char* kUtilizationSeries = "utilization";
inline constexpr const char* kCpuSeries = "cpu";
inline constexpr const char* kDeviceMemorySeries = "device_memory";
inline constexpr const char* kEfaRxSeries = "efa_rx";
inline constexpr const char* kEfaTxSeries = "efa_tx";
[[nodiscard]] std::string device_series(int index);             // per cent
[[nodiscard]] std::string efa_series(const std::string& name);  // received and sent together

// The input of every picture.
struct Scene {
  const ViewModel& model;
  const History& history;
  const ViewState& state;
  render::Charset charset = render::Charset::utf8;
};

[[nodiscard]] Table condition_table(const Scene& scene);  // health, ECC, power
[[nodiscard]] Table efa_table(const Scene& scene);
[[nodiscard]] Table process_table(const Scene& scene);
[[nodiscard]] Table pod_table(const Scene& scene);
[[nodiscard]] Table history_table(const Scene& scene, int columns);

// "Memory Usage Details": devices, below them their logical cores, below those the kinds of memory. A parent shows the
// driver's own number, so its children need not add up to it where some kind is unknown.
[[nodiscard]] Table memory_table(const ViewModel& model, const ViewState& state);

// Keys of all devices and cores of the memory tree, whether or not their parent is open.
[[nodiscard]] std::vector<std::string> memory_nodes(const ViewModel& model, const ViewState& state);

// One kind of memory, or the sum of several that are shown as one.
struct MemoryKind {
  std::string name;  // "Model Code"
  std::optional<std::uint64_t> bytes;
};

// The five kinds of the official tool in its order, then the rest as "Other". A kind that is unknown on one of `parts`
// is unknown.
[[nodiscard]] std::vector<MemoryKind> device_kinds(const std::vector<model::DeviceMemory>& parts);
// Tensors, constants, DMA buffers, application memory, other.
[[nodiscard]] std::vector<MemoryKind> host_kinds(const std::vector<model::HostMemory>& parts);

// The table of the panel that was chosen, and its heading.
[[nodiscard]] Table panel_table(const Scene& scene, int columns);
[[nodiscard]] std::string panel_title(const Scene& scene);

// Keys of the rows of the panel, from the top.
[[nodiscard]] std::vector<std::string> panel_rows(const ViewModel& model, const ViewState& state);

// The colour of a verdict: "healthy" green, "unhealthy" red.
[[nodiscard]] Role role_of(model::HealthState state);

}  // namespace neuron::screen
