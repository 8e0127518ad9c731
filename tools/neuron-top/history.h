#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/neuron-top/view_model.h"

namespace neuron::top {

// The last values of what the sparklines show, one per sample, oldest first. Bounded: kLength values of at most
// kSeries series. A value that was not known keeps its place. One thread.
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

}  // namespace neuron::top
