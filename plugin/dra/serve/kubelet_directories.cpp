#include "plugin/dra/serve/driver.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <initializer_list>
#include <utility>

#include "agent/base/parse.h"
#include "plugin/kubelet/socket_file.h"

namespace neuron::plugin::dra {
namespace {

constexpr std::string_view kRegistrationEnd = "-reg.sock";

// Distinguishes instances on one node; so short that a driver's longest name, 63 bytes, fits beside it in the kubelet's
// usual directory.
std::string hash_of(std::string_view text) {
  constexpr std::size_t kDigits = 8;
  return sha256_hex(text).substr(0, kDigits);
}

Result<std::string> first_that_fits(const std::string& directory, std::initializer_list<std::string> names) {
  for (const std::string& name : names) {
    if (directory.size() + 1 + name.size() < sizeof(sockaddr_un::sun_path)) return name;
  }
  return fail(
      ErrorCode::invalid_argument,
      fmt::format(
          "{}: too long for a socket path (at most {} bytes); choose a shorter --kubelet-dir or --dra-driver-name",
          directory, sizeof(sockaddr_un::sun_path) - 1));
}

bool is_older_than(std::chrono::seconds young, const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return false;
  return std::chrono::system_clock::from_time_t(info.st_ctim.tv_sec) + young < std::chrono::system_clock::now();
}

template <typename IsIts>
int sweep(const std::string& directory, const std::string& own, std::chrono::seconds young, const IsIts& is_its) {
  int removed = 0;
  for (const std::string& name : sockets_in(directory)) {
    const std::string path = directory + "/" + name;
    if (name == own || !is_its(name) || !is_older_than(young, path) || socket_state(path) != SocketState::dead)
      continue;
    if (::unlink(path.c_str()) != 0) continue;
    spdlog::info("removed stale socket={}", path);
    ++removed;
  }
  return removed;
}

}  // namespace

Result<SocketNames> socket_names(const std::string& kubelet_dir, const std::string& driver,
                                 const std::string& pod_uid) {
  SocketNames names;
  names.claims_dir = kubelet_dir + "/plugins/" + driver;
  names.registry_dir = kubelet_dir + "/plugins_registry";
  const std::string uid = pod_uid.empty() ? "" : "-" + pod_uid;
  const std::string short_uid = pod_uid.empty() ? "" : "-" + hash_of(pod_uid);
  TRY_ASSIGN(names.claims, first_that_fits(names.claims_dir, {"dra" + uid + ".sock", "dra" + short_uid + ".sock"}));
  TRY_ASSIGN(names.registration,
             first_that_fits(names.registry_dir,
                             {fmt::format("{}{}{}", driver, uid, kRegistrationEnd),
                              fmt::format("{}{}{}", driver, short_uid, kRegistrationEnd),
                              fmt::format("dra-{}{}", hash_of(driver + "/" + pod_uid), kRegistrationEnd)}));
  return names;
}

bool is_claims_socket(std::string_view name) {
  return name == "dra.sock" || (name.starts_with("dra-") && name.ends_with(".sock"));
}

bool is_registration_socket(std::string_view name, std::string_view driver) {
  return name.starts_with(driver) && name.substr(driver.size()).starts_with("-") && name.ends_with(kRegistrationEnd);
}

int remove_dead_sockets(const SocketNames& own, std::string_view driver, std::chrono::seconds young) {
  return sweep(own.registry_dir, own.registration, young,
               [&](const std::string& name) { return is_registration_socket(name, driver); }) +
         sweep(own.claims_dir, own.claims, young, is_claims_socket);
}

std::optional<Error> ModeGuard::check() {
  constexpr std::chrono::seconds kEvery{2};
  const SteadyTime now = clock_.now();
  if (now < check_at_) return error_;
  check_at_ = now + kEvery;
  if (lock_) {
    const auto is_current =
        calls_.run([lock = lock_, directory = directory_] { return lock->is_of(directory); }, kBudget);
    if (is_current.value_or(true)) return std::nullopt;
  }
  lock_.reset();  // the directory was replaced
  auto lock = calls_.run([directory = directory_] { return InstanceLock::take(directory, InstanceLock::Mode::claims); },
                         kBudget);
  if (!lock) return error_;
  error_.reset();
  if (*lock) {
    lock_ = std::make_shared<const InstanceLock>(**std::move(lock));
  } else if (lock->error().code != ErrorCode::not_found) {
    error_ = std::move(*lock).error();
  }
  return error_;
}

}  // namespace neuron::plugin::dra
