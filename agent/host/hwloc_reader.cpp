#include <fcntl.h>
#include <hwloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "agent/host/attributes.h"
#include "agent/host/machine_topology.h"
#include "agent/host/temporary_directory.h"

namespace neuron::host {
namespace {

constexpr std::string_view kCpus = "sys/devices/system/cpu";
constexpr std::string_view kNodes = "sys/devices/system/node";
constexpr std::string_view kFunctions = "sys/bus/pci/devices";

// Writes the files that hwloc reads of processors, memory and PCI functions into an empty directory: plain files in
// plain folders, read through `root`, so that links resolve inside it, nothing blocks and nothing is larger than the
// kernel makes it. CPUs above 8191, nodes above 1023 and lists with such numbers, for which hwloc would ask gigabytes,
// are left out, as are unreadable files.
class Copier {
 public:
  Copier(const FsRoot& root, int directory) : root_(root), directory_(directory) {}

  Result<void> run() {
    TRY(copy_numbered(kCpus, "cpu", kMaxCpu, {"topology/core_cpus", "topology/thread_siblings"}, Take::first));
    TRY(copy_numbered(kNodes, "node", kMaxNumaNode, {"cpumap", "meminfo", "distance"}, Take::all));
    TRY(copy_functions());
    TRY(copy_file("proc/cpuinfo", std::size_t{8} << 20U));
    return copy_file("proc/meminfo", std::size_t{64} << 10U);
  }

 private:
  using Names = std::initializer_list<std::string_view>;
  enum class Take { all, first };  // of the existing files; the first where the name depends on the kernel

  // The lists of one folder, and `files` of each of its numbered subfolders.
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

  // The path up to its last slash.
  Result<void> make_folders(const std::string& path) {
    for (auto end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
      const std::string folder = path.substr(0, end);
      if (::mkdirat(directory_, folder.c_str(), 0700) != 0 && errno != EEXIST) return fail(write_error(folder));
    }
    return {};
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

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, DestroyTopology>;

std::vector<int> indices(hwloc_const_bitmap_t set) {
  std::vector<int> values;
  if (set == nullptr || hwloc_bitmap_weight(set) < 0) return values;  // absent or infinite
  for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i)) values.push_back(i);
  return values;
}

Error hwloc_error(const FsRoot& root, const char* what) {
  Error error = error_from_errno(errno, std::string(what) + " below " + root.path());
  error.code = ErrorCode::internal;
  return error;
}

// Removes hwloc's variables, which change what it reads.
void clear_environment() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (text.starts_with("HWLOC_")) names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

std::vector<model::NumaNode> numa_nodes_of(hwloc_topology_t topology) {
  std::map<int, std::vector<int>> nodes;
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    nodes[static_cast<int>(node->os_index)] = indices(node->cpuset);
  }
  std::vector<model::NumaNode> result;
  for (auto& [index, cpus] : nodes) result.push_back({index, std::move(cpus)});
  return result;
}

// hwloc places a function without known locality below the whole machine, which means nothing with several nodes.
std::map<model::Bdf, std::vector<int>> numa_of_functions(hwloc_topology_t topology, std::size_t node_count) {
  std::map<model::Bdf, std::vector<int>> result;
  hwloc_obj_t function = nullptr;
  while ((function = hwloc_get_next_pcidev(topology, function)) != nullptr) {
    const auto& pci = function->attr->pcidev;
    const hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(topology, function);
    if (pci.vendor_id != kAmazonVendor || place == nullptr) continue;
    auto nodes = indices(place->nodeset);
    if (nodes.empty() || (place->type == HWLOC_OBJ_MACHINE && node_count > 1)) continue;
    result[{pci.domain, pci.bus, pci.dev, pci.func}] = std::move(nodes);
  }
  return result;
}

Result<MachineTopology> load(const FsRoot& root) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return fail(hwloc_error(root, "cannot start"));
  const Topology topology(raw);
  // The usual filter drops class 0880, which is what Neuron devices are.
  if (hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
      hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0) {
    return fail(hwloc_error(root, "cannot be set up"));
  }
  if (hwloc_topology_load(raw) != 0) return fail(hwloc_error(root, "cannot load the machine"));
  MachineTopology machine;
  machine.numa_nodes = numa_nodes_of(raw);
  machine.numa_of = numa_of_functions(raw, machine.numa_nodes.size());
  return machine;
}

}  // namespace

Result<MachineTopology> read_with_hwloc(const FsRoot& root) {
  constexpr std::uint64_t kUsualFiles = 8192;  // 192 CPUs and 200 functions make 3,000
  std::unique_ptr<TemporaryDirectory> copy;
  if (!root.is_live()) {
    TRY_ASSIGN(copy, TemporaryDirectory::make(temporary_place(0, kUsualFiles)));
    TRY(Copier(root, copy->handle()).run());
  }
  clear_environment();
  ::setenv("HWLOC_COMPONENTS", "linux,stop", 1);  // the kernel's files only, no plugins for GPUs
  ::setenv("HWLOC_HIDE_ERRORS", "2", 1);          // errors are returned here, not printed on stderr
  if (copy) {
    ::setenv("HWLOC_FSROOT", copy->path().c_str(), 1);
    ::setenv("HWLOC_DUMPED_HWDATA_DIR", "/none", 1);
  }
  return load(root);
}

}  // namespace neuron::host
