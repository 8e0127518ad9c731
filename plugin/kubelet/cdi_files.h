#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/base/clock.h"
#include "agent/grant/grant.h"

// CDI spec files in a container runtime's directory, which may hang.
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

// Texts of spec files by path; "" = there must be no such file.
using CdiTexts = std::map<std::string, std::string>;

// The specs of both kinds (agent/grant/grant.h) in `directory`: "aws.amazon.com/neuron" is in
// "aws.amazon.com-neuron.json"; "" for a kind that the node has none of. Pure.
[[nodiscard]] CdiTexts cdi_texts(const grant::NodeUnits& node, const grant::GrantOptions& options,
                                 const std::string& directory);

// Keeps the node's CDI specs in the container runtime's directory. A node is passed to the rest of the agent once its
// specs are written, so that no answer names a CDI device that is in no file; or once writing has failed or takes
// longer than CdiWriter::kPatience: CDI names may not resolve then, and everything else works. The files are compared
// every `every`, and written again when they are missing or differ.
//
// Methods, `show` and callbacks of `post` run on one thread, and never touch a file. Files are read and written by
// `run` alone, one job at a time, which may hang in the file system; a job outlives this object if need be. Held by
// shared_ptr: posted callbacks end with it.
class CdiSpecs : public std::enable_shared_from_this<CdiSpecs> {
 public:
  using Job = std::function<void()>;
  struct Settings {
    std::string directory;
    grant::GrantOptions grant;
    std::chrono::milliseconds every{5000};
  };
  struct Ports {
    std::function<void(Job)> run;               // any thread that may hang
    std::function<void(SteadyTime, Job)> post;  // to the one thread, at or after the time; callable from any thread
    std::function<void(grant::NodeUnitsPtr)> show;
    std::function<void()> directory_is_dead;  // as is_removed_directory(): only a new container has the new one
    const Clock& clock;
  };
  CdiSpecs(Settings settings, Ports ports);

  void set_node(grant::NodeUnitsPtr node);  // never null

 private:
  using TextsPtr = std::shared_ptr<const CdiTexts>;

  [[nodiscard]] static CdiWriter::Written write(const CdiTexts& texts, const std::string& directory);
  void begin();
  void ended(const TextsPtr& texts);
  void check();
  void show();

  const Settings settings_;
  const Ports ports_;
  TextsPtr wanted_;              // null before the first node
  TextsPtr written_;             // by the last job, if it succeeded
  grant::NodeUnitsPtr waiting_;  // not shown yet
  CdiWriter writer_;
};

}  // namespace neuron::plugin
