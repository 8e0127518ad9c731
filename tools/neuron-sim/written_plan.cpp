#include "tools/neuron-sim/written_plan.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "agent/base/fd.h"
#include "neuron_version.h"

namespace neuron::sim {
namespace {

constexpr const char* kOwnFolder = ".neuron-sim";
constexpr const char* kName = "plan";
constexpr const char* kNewName = "plan.new";

// Not through a link: what is changed lies below `dir`.
Fd open_folder(const std::string& dir) {
  return Fd(::open((dir + "/" + kOwnFolder).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

std::string name_in(const std::string& dir) {
  return dir + "/" + kOwnFolder + "/" + kName;
}

}  // namespace

std::string plan_line(const MachinePlan& machine) {
  const HostPlan& options = machine.options;
  nlohmann::json line{{"version", kVersion},
                      {"type", options.instance_type},
                      {"driver", options.driver_version},
                      {"lnc", options.lnc.value_or(0)},
                      {"missing", options.missing},
                      {"without", nlohmann::json::array()},
                      {"instance_id", options.instance_id},
                      {"naming", options.naming == RdmaNaming::by_path ? "path" : "kernel"},
                      {"files", options.files}};
  if (const auto& server = options.ultraserver) {
    line["ultraserver"] = {static_cast<int>(server->state), server->nodes, server->node};
  }
  std::sort(line["missing"].begin(), line["missing"].end());
  for (const Part part : options.without) line["without"].push_back(static_cast<int>(part));
  return line.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

bool is_written_from(const std::string& dir, const std::string& line) {
  const Fd folder = open_folder(dir);
  const Fd file(folder.valid() ? ::openat(folder.get(), kName, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1);
  if (!file.valid()) return false;
  std::string text(line.size() + 1, '\0');  // one more, to see that there is no more
  const ssize_t count = ::read(file.get(), text.data(), text.size());
  if (count < 0) return false;
  text.resize(static_cast<std::size_t>(count));
  return text == line;
}

Result<void> forget_plan(const std::string& dir) {
  const Fd folder = open_folder(dir);
  if (!folder.valid() || ::unlinkat(folder.get(), kName, 0) == 0 || errno == ENOENT) return {};
  return fail(error_from_errno(errno, name_in(dir)));
}

Result<void> record_plan(const std::string& dir, const std::string& line) {
  const Fd folder = open_folder(dir);
  if (!folder.valid()) return fail(error_from_errno(errno, dir + "/" + kOwnFolder));
  const Fd file(::openat(folder.get(), kNewName, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file.valid()) return fail(error_from_errno(errno, name_in(dir)));
  TRY(write_all(file.get(), line, name_in(dir)));
  if (::renameat(folder.get(), kNewName, folder.get(), kName) != 0) {
    return fail(error_from_errno(errno, name_in(dir)));
  }
  return {};
}

}  // namespace neuron::sim
