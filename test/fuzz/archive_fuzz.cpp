// An archive given as --root is foreign: whatever it holds, what is unpacked stays inside its directory, consists of
// folders, files and inner links, and goes with its object.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "agent/base/fd.h"
#include "agent/host/root_source.h"

namespace {

namespace fs = std::filesystem;

void check_tree(const fs::path& root) {
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const auto type = entry.symlink_status().type();
    if (type == fs::file_type::symlink) {
      std::error_code error;
      const auto end = fs::weakly_canonical(entry.path(), error);
      // A loop and a way through a file lead nowhere; all else must end inside.
      if (!error && !end.native().starts_with(root.native())) std::abort();
    } else if (type != fs::file_type::regular && type != fs::file_type::directory) {
      std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const neuron::Fd file(::memfd_create("archive", MFD_CLOEXEC));
  if (!file.valid() || ::write(file.get(), data, size) != static_cast<ssize_t>(size)) return 0;
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  const neuron::host::ArchiveBounds bounds{
      .entries = 100, .total_bytes = 1U << 20U, .file_bytes = 1U << 16U, .path_bytes = 200, .depth = 8};
  std::string directory;
  {
    const auto source = neuron::host::RootSource::open(path, bounds);
    if (!source) {
      if (source.error().message.empty()) std::abort();
      return 0;
    }
    directory = source->directory();
    check_tree(fs::canonical(directory));
  }
  if (fs::exists(directory)) std::abort();
  return 0;
}
