#include "agent/host/hwloc_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <string>
#include <string_view>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "agent/model/device.h"

namespace neuron::host {
namespace {

constexpr int kMaxCpu = 8191;   // the kernel's own limit
constexpr int kMaxNode = 1023;  // as above
constexpr std::size_t kMaxFunctions = 4096;

constexpr std::string_view kCpus = "sys/devices/system/cpu";
constexpr std::string_view kNodes = "sys/devices/system/node";
constexpr std::string_view kFunctions = "sys/bus/pci/devices";

class Copier {
 public:
  Copier(const FsRoot& root, int directory) : root_(root), directory_(directory) {}

  Result<void> run() {
    TRY(copy_numbered(kCpus, "cpu", kMaxCpu, {"topology/core_cpus", "topology/thread_siblings"}, Take::first));
    TRY(copy_numbered(kNodes, "node", kMaxNode, {"cpumap", "meminfo", "distance"}, Take::all));
    TRY(copy_functions());
    TRY(copy_file("proc/cpuinfo", std::size_t{8} << 20U));
    return copy_file("proc/meminfo", std::size_t{64} << 10U);
  }

 private:
  using Names = std::initializer_list<std::string_view>;
  enum class Take { all, first };  // of the names of files, those that are there; the first for one of other kernels

  // The lists of one folder, and some files of each of its numbered subfolders.
  Result<void> copy_numbered(std::string_view folder, std::string_view prefix, int max, Names files, Take how) {
    for (const std::string_view list : {"/online", "/possible", "/present"}) {
      const std::string path = std::string(folder).append(list);
      const auto text = root_.read_attribute(path);
      if (text && parse_int_list(*text, max)) TRY(write(path, *text + '\n'));
    }
    for (const std::string& name : root_.list(folder).value_or(std::vector<std::string>())) {
      if (!name.starts_with(prefix)) continue;
      const auto number = parse_int(std::string_view(name).substr(prefix.size()), 0, max);
      if (!number || name != std::string(prefix) + std::to_string(*number)) continue;
      TRY(copy_files(std::string(folder) + '/' + name + '/', files, how));
    }
    return {};
  }

  Result<void> copy_functions() {
    std::size_t count = 0;
    for (const std::string& name : root_.list(kFunctions).value_or(std::vector<std::string>())) {
      if (!model::parse_bdf(name) || ++count > kMaxFunctions) continue;
      const std::string folder = std::string(kFunctions) + '/' + name + '/';
      TRY(copy_files(folder, {"class", "vendor", "device", "local_cpus"}, Take::all));
      constexpr std::size_t kWholeConfig = 4096;  // what root may read
      TRY(copy_file(folder + "config", kWholeConfig));
    }
    return {};
  }

  Result<void> copy_files(const std::string& folder, Names files, Take how) {
    for (const std::string_view file : files) {
      const std::string path = folder + std::string(file);
      const auto text = root_.read_attribute(path);
      if (!text) continue;
      TRY(write(path, *text + '\n'));
      if (how == Take::first) return {};
    }
    return {};
  }

  Result<void> copy_file(const std::string& path, std::size_t max_bytes) {
    const auto content = root_.read_file(path, max_bytes);
    if (!content) return {};
    return write(path, *content);
  }

  // The folder that the path up to its last slash names, and those above it.
  Result<void> make_folders(const std::string& path) {
    const auto slash = path.rfind('/');
    if (slash == std::string::npos) return {};
    const std::string folder = path.substr(0, slash);
    if (::mkdirat(directory_, folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
    if (errno != ENOENT) return fail(write_error(folder));
    TRY(make_folders(folder));
    if (::mkdirat(directory_, folder.c_str(), 0700) == 0) return {};
    return fail(write_error(folder));
  }

  Result<void> write(const std::string& path, const std::string& content) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    Fd file(::openat(directory_, path.c_str(), kFlags, 0600));
    if (!file.valid() && errno == ENOENT) {
      TRY(make_folders(path));
      file = Fd(::openat(directory_, path.c_str(), kFlags, 0600));
    }
    if (!file.valid()) return fail(write_error(path));
    errno = ENOSPC;  // for a write that stops early
    if (::write(file.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
      return fail(write_error(path));
    }
    return {};
  }

  static Error write_error(const std::string& path) {
    auto error = error_from_errno(errno, "copying " + path + " to a temporary directory");
    error.code = ErrorCode::internal;
    return error;
  }

  const FsRoot& root_;
  int directory_;
};

}  // namespace

Result<void> copy_for_hwloc(const FsRoot& root, int directory) {
  return Copier(root, directory).run();
}

}  // namespace neuron::host
