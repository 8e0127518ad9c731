#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/base/workers.h"
#include "agent/health/assess.h"
#include "agent/host/fs_root.h"
#include "agent/host/scanner.h"
#include "agent/host/usage_reader.h"
#include "tools/screen/view_model.h"

namespace neuron::top {

using screen::Moment;
using Sampler = BackgroundReader<Moment, model::UsageRequest>;

struct CollectorOptions {
  std::string root = "/";  // a directory
  bool with_pods = false;
  std::string kubelet_socket;  // of PodResources
  std::chrono::milliseconds scan_every{3000};
  std::string claim_driver{core::kDefaultDriverName};  // as Moment::claim_driver
};

// Reads a machine once per collect(). Slow values are read rarely: inventory, health and processes every
// CollectorOptions::scan_every, kinds of memory where totals moved, and all of them every kKindsEvery, pods every
// kPodsEvery (the kubelet's List has a side effect). Rates are taken over at least kLeastWindow where there is a sample
// that old. One thread at a time; collect() may block inside a hung driver, and for a second when the kubelet does not
// answer.
class Collector {
 public:
  static constexpr std::chrono::seconds kKindsEvery{10};
  static constexpr std::chrono::seconds kPodsEvery{30};
  static constexpr std::chrono::milliseconds kLeastWindow{450};

  // Errors: those of FsRoot::open.
  [[nodiscard]] static Result<std::unique_ptr<Collector>> open(CollectorOptions options);
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  [[nodiscard]] Moment collect(const model::UsageRequest& request);

 private:
  Collector(CollectorOptions options, host::FsRoot root);
  void scan(SteadyTime now);
  void ask_for_pods(SteadyTime now);
  void complete_kinds(model::UsageSample& sample);
  [[nodiscard]] model::UsageSample sample(model::UsageRequest request, SteadyTime now);

  CollectorOptions options_;
  host::FsRoot root_;
  host::Scanner scanner_;
  host::UsageReader usage_;
  host::UsageReader kinds_usage_;  // of devices whose memory moved; a reader forgets those it is not asked for
  health::AssessMemory memory_;
  model::HostScan node_;                    // assessed
  std::deque<model::UsageSample> samples_;  // the newest last; those that rates may still be taken from
  std::vector<model::Allocation> pods_;
  std::string no_pods_ = "not asked for (--pods)";
  std::optional<SteadyTime> scanned_, kinds_read_, pods_asked_;
};

}  // namespace neuron::top
