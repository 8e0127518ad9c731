#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace neuron::gather {

enum class Take {
  text,        // the file's content, at most kMaxTextBytes
  large,       // the same, at most kMaxLargeBytes
  config,      // the first 256 bytes of PCI configuration space, all that users may read
  node,        // an empty file in the place of a device node; nothing is opened
  tree,        // a folder with all that is below it, except the kernel's own entries of a device (kernel_entries())
  folder,      // a folder or where a link leads to, without its content
  kernel_log,  // of the kernel log what it says of Neuron hardware (kernel_log_text.h)
  containerd,  // of containerd's configuration the version and enable_cdi; the rest may hold passwords
};

inline constexpr std::size_t kMaxTextBytes = 16384;
inline constexpr std::size_t kMaxLargeBytes = std::size_t{8} << 20U;
inline constexpr std::size_t kConfigBytes = 256;
inline constexpr std::size_t kMaxTreeDepth = 12;

// One kind of file that our programs read. Passive data.
struct Rule {
  // Relative to the root. Within a component '*' stands for any text, and '#' for a number. Links are followed inside
  // the root, and kept.
  std::string_view path;
  Take take = Take::text;
};

// Everything that is captured; nothing else of a machine is ever opened, except the device nodes that
// host::query_driver asks, the kernel log and the files below proc/<pid> that Collector::collect_processes names.
// Reading none of it changes anything: the write-to-clear files of the Neuron driver and `reset` are only read, and
// `node` opens nothing. A test runs every reader on a captured tree and on its original and compares, so a reader that
// looks at more is noticed. Static lifetime, any thread.
[[nodiscard]] std::span<const Rule> rules();

// Entries of every kernel device that no reader looks at: power, subsystem, uevent.
[[nodiscard]] std::span<const std::string_view> kernel_entries();

// Whether `name` is what the component `pattern` of a rule means.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view name);

}  // namespace neuron::gather
