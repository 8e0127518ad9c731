#pragma once

#include <iosfwd>
#include <map>
#include <string>

#include "tools/neuron-sim/load_activity.h"

namespace neuron::sim {

// Tells people what a load plays: one line when a process comes or goes, and one about everything every few seconds of
// the load's time. Not thread-safe.
class LoadReport {
 public:
  explicit LoadReport(std::ostream& out) : out_(out) {}  // `out` must outlive it

  void begin(const std::string& directory, const LoadShape& shape, bool counts_live);
  void note(const Activity& activity, double step_seconds);
  void end(const Activity& activity);

 private:
  void note_processes(const Activity& activity);
  void summarise(const Activity& activity);

  std::ostream& out_;
  std::map<int, std::string> processes_;  // by pid, as they were announced
  double next_summary_ = 2;
  double since_summary_ = 0;  // seconds, as the next two
  double busy_ = 0;           // of all cores together
  double sent_bytes_ = 0;
};

}  // namespace neuron::sim
