#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/fs_root.h"
#include "tools/neuron-gather/capture.h"
#include "tools/neuron-gather/rules.h"

namespace neuron::gather {

enum class Commands { leave_out, include };

// Captures what rules() name of one machine, and the driver's answers. Opens nothing else, writes nothing. What is not
// there is not captured, what is there and cannot be read is noted. One thread; may block inside a hung driver.
class Collector {
 public:
  // Told of every path just before it is read; false: leave it out, and note that it did not answer.
  using Permit = std::function<bool(const std::string& path)>;

  // All three must outlive the collector.
  Collector(const host::FsRoot& root, Capture& capture, Permit permit)
      : root_(root), capture_(capture), permit_(std::move(permit)) {}

  void collect(const Rule& rule);

  // neuron-ioctl/neuron<N>.json of each captured device: of a live machine what the driver answers now, else the
  // recorded file as it is.
  void collect_driver_answers();

  // Who uses the captured devices: proc/<pid>/fd and fdinfo of the files that have one open (host/device_users.h), no
  // other file of anybody's; and proc/1/fd without content when everybody was looked at, which readers go by. Of these
  // processes and those in the captured answers proc/<pid>/stat and statm, and where asked for cmdline, and of environ
  // the one variable NEURON_PROCESS_TAG.
  void collect_processes(Commands commands);

 private:
  struct Node {
    std::string path;  // resolved: no part of it is a link
    bool exists = false;
  };

  [[nodiscard]] bool permitted(const std::string& path);
  [[nodiscard]] Node resolve(const std::string& path);
  void expand(const std::string& folder, std::string_view rest, Take take);
  void take(const std::string& path, Take how);
  void take_text(const std::string& path, std::size_t max_bytes);
  void take_config(const std::string& path);
  void take_containerd(const std::string& path);
  void take_kernel_log(const std::string& path);
  void take_tree(const std::string& folder, std::size_t depth);
  [[nodiscard]] std::vector<int> take_device_users(const std::vector<int>& devices);
  void take_process(int pid, Commands commands);
  [[nodiscard]] const std::vector<std::string>& names_in(const std::string& folder);
  [[nodiscard]] std::vector<int> captured_devices() const;
  void note(const std::string& path, const Error& error);

  const host::FsRoot& root_;
  Capture& capture_;
  Permit permit_;
  std::map<std::string, Node> resolved_;                     // links met
  std::map<std::string, std::vector<std::string>> folders_;  // listed
};

}  // namespace neuron::gather
