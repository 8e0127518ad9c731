#pragma once

#include <cstdint>

// What a program sees to with its descriptors before it does anything else.
namespace neuron {

// Opens /dev/null in the place of each of the descriptors 0, 1 and 2 that this program was started without, so that no
// file it opens later becomes its standard output. Reading from or writing to such a stand-in fails with EBADF, as it
// would have without. SIGCHLD is as by default from then on: who starts a program may have ignored it, and then nobody
// can say how a child ended. The first thing in main(): before any thread and any other file.
void open_standard_streams();

// The limit of open files (RLIMIT_NOFILE) of this process. Passive data.
struct DescriptorLimit {
  std::uint64_t before = 0;  // the soft limit as it was
  std::uint64_t now = 0;     // as it is
};

// Programs that never use select() need not keep to the soft limit of 1024 that container runtimes give them.
inline constexpr std::uint64_t kMostDescriptors = 65536;

// Raises the soft limit to the hard one, to kMostDescriptors at most; never lowers it. Child processes inherit it.
DescriptorLimit raise_descriptor_limit();

}  // namespace neuron
