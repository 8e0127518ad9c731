#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/base/clock.h"

namespace neuron::plugin {

// CDI specs in a directory that may hang. They are read and written on a thread that may hang with it, one job at a
// time; a job that fails or takes longer than kPatience is logged, and so is the first one that succeeds afterwards. A
// job that hangs is waited for, however long, and not joined by another; it may outlive this object. All methods from
// one thread; none blocks or touches a file.
class CdiWriter {
 public:
  static constexpr std::chrono::milliseconds kPatience{2000};

  struct Written {
    std::string error;  // "": all files have the content they should have
    bool is_changed = false;
    bool is_dead = false;  // the directory, as is_removed_directory()
  };
  using Job = std::function<void()>;
  using Write = std::function<Written()>;  // objects that it refers to must outlive the threads of `run`

  struct Settings {
    std::string what;       // for the log: "CDI specs"
    std::string directory;  // for the log
  };

  // `run`: a job, on any thread that may hang. `clock` must outlive this object.
  CdiWriter(Settings settings, std::function<void(Job)> run, const Clock& clock);

  // False: a job is under way, and `write` is not begun. `ended`: on the job's thread, once take() has its result.
  [[nodiscard]] bool begin(Write write, Job ended);

  // The result of the job that has ended, once. Logs a change.
  [[nodiscard]] std::optional<Written> take();

  // The job that is under way has taken longer than kPatience. Logs that once.
  [[nodiscard]] bool is_late();

  // When to ask is_late(): nullopt without a job, and after it was late.
  [[nodiscard]] std::optional<SteadyTime> late_at() const;
  [[nodiscard]] bool is_running() const { return begun_at_.has_value(); }

 private:
  struct Answer;
  void log_state(const std::string& error);

  const Settings settings_;
  const std::function<void(Job)> run_;
  const Clock& clock_;
  const std::shared_ptr<Answer> answer_;  // shared with the job
  std::optional<SteadyTime> begun_at_;    // of the job that is under way
  bool was_late_ = false;                 // that job
  std::string error_;                     // as last logged; "": none
};

}  // namespace neuron::plugin
