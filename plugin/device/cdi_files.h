#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/base/clock.h"
#include "agent/base/result.h"
#include "agent/grant/grant.h"
#include "agent/grant/node_units.h"
#include "plugin/kubelet/cdi_writer.h"

namespace neuron::plugin {

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
