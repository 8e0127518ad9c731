#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/fs_root.h"
#include "tools/neuron-gather/capture.h"

namespace neuron::gather {

enum class Take {
  text,        // the file's content, at most kMaxTextBytes
  large,       // the same, at most kMaxLargeBytes
  config,      // the first 256 bytes of PCI configuration space
  node,        // an empty file in the place of a device node; nothing is opened
  tree,        // a folder with all that is below it, except the kernel's own entries of a device (kernel_entries())
  folder,      // a folder or the target of a link, without its content
  kernel_log,  // the Neuron hardware records of the kernel log (docs/fixtures.md#the-kernel-log)
  containerd,  // version and enable_cdi of containerd's configuration; the rest may hold passwords
};

inline constexpr std::size_t kMaxTextBytes = 16384;
inline constexpr std::size_t kMaxLargeBytes = std::size_t{8} << 20U;
inline constexpr std::size_t kConfigBytes = 256;
inline constexpr std::size_t kMaxTreeDepth = 12;

// One kind of file that our programs read. Passive data.
struct Rule {
  // Relative to the root. '*' within a component matches any text, '#' a number. Links are followed inside the root,
  // and kept.
  std::string_view path;
  Take take = Take::text;
};

// Everything that is captured. Beside it only the device nodes of host::query_driver, the kernel log and the files
// below proc/<pid> of Collector::collect_processes are opened. Reading changes nothing: the write-to-clear files of the
// Neuron driver and `reset` are only read, and `node` opens nothing. read_back_test compares every reader on a captured
// tree with its original, so a read without a rule fails there. Static lifetime, any thread.
[[nodiscard]] std::span<const Rule> rules();

// Entries of every kernel device that no reader uses: power, subsystem, uevent.
[[nodiscard]] std::span<const std::string_view> kernel_entries();

// Whether `name` matches one component of a rule's path.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view name);

enum class Commands { leave_out, include };

// Captures the files that rules() names, and the driver's answers. Opens nothing else, writes nothing. Absent files are
// skipped; an existing file that cannot be read is noted. One thread; may block inside a hung driver.
class Collector {
 public:
  // Called just before each path is read; false: leave it out, and note that it did not answer.
  using Permit = std::function<bool(const std::string& path)>;

  // All three must outlive the collector.
  Collector(const host::FsRoot& root, Capture& capture, Permit permit)
      : root_(root), capture_(capture), permit_(std::move(permit)) {}

  void collect(const Rule& rule);

  // neuron-ioctl/neuron<N>.json of each captured device: the driver's answers on a live machine, else the recorded file
  // unchanged.
  void collect_driver_answers();

  // The users of captured devices: proc/<pid>/fd and fdinfo of the open device files only (host/proc_files.h), and an
  // empty proc/1/fd when every process could be read, which readers rely on. Of these processes and those in the
  // captured answers proc/<pid>/stat and statm; with Commands::include also cmdline and NEURON_PROCESS_TAG of environ.
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

enum class Identity { keep, anonymise };

struct GatherRequest {
  Commands commands = Commands::leave_out;
  Identity identity = Identity::keep;
  std::chrono::system_clock::time_point now;  // for the manifest
};

// Captures a machine, with its MANIFEST.json. A capture of a capture equals it. `permit` as in Collector.
// Blocks on file reads and the driver; any thread.
[[nodiscard]] Capture gather(const host::FsRoot& root, const GatherRequest& request, const Collector::Permit& permit);

// The captured file's text without white space around it, "" when there is none.
[[nodiscard]] std::string captured_text(const Capture& capture, const std::string& path);

inline constexpr const char* kProductName = "sys/devices/virtual/dmi/id/product_name";

}  // namespace neuron::gather
