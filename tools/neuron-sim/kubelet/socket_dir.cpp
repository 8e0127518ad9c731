#include "tools/neuron-sim/kubelet/socket_dir.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace neuron::sim {
namespace {

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), std::min(path.size(), sizeof(address.sun_path) - 1));
  return address;
}

// POSIX wants the general type.
const sockaddr* general(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

Result<void> make_directory(const std::string& path) {
  std::string prefix;
  for (const auto& part : std::filesystem::path(path)) {
    prefix = (std::filesystem::path(prefix) / part).string();
    if (::mkdir(prefix.c_str(), 0750) != 0 && errno != EEXIST && errno != EISDIR) {
      return fail(error_from_errno(errno, "creating " + prefix));
    }
  }
  if (std::error_code ignored; !std::filesystem::is_directory(path, ignored)) {
    return fail(ErrorCode::invalid_argument, path + " is not a directory");
  }
  return {};
}

Result<void> wipe_sockets(const std::string& dir) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    if (std::error_code ignored;
        std::filesystem::symlink_status(entry.path(), ignored).type() != std::filesystem::file_type::socket) {
      continue;
    }
    if (::unlink(entry.path().c_str()) != 0 && errno != ENOENT) {
      return fail(error_from_errno(errno, "removing " + entry.path().string()));
    }
  }
  if (error) return fail(error_from_errno(error.value(), "reading " + dir));
  return {};
}

bool is_listening(const std::string& socket_path) {
  if (!check_socket_path(socket_path)) return false;
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = address_of(socket_path);
  return ::connect(socket.get(), general(address), sizeof(address)) == 0 || errno == EAGAIN;
}

Result<void> check_socket_path(const std::string& path) {
  if (path.size() < sizeof(sockaddr_un::sun_path)) return {};
  return fail(ErrorCode::invalid_argument, path + " is longer than a unix socket address may be (107 bytes)");
}

Result<std::unique_ptr<ClosingSocket>> ClosingSocket::open(const std::string& path) {
  TRY(check_socket_path(path));
  Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Fd stop(::eventfd(0, EFD_CLOEXEC));
  if (!listener.valid() || !stop.valid()) return fail(error_from_errno(errno, "making a socket"));
  ::unlink(path.c_str());
  const sockaddr_un address = address_of(path);
  if (::bind(listener.get(), general(address), sizeof(address)) != 0 || ::listen(listener.get(), 16) != 0) {
    return fail(error_from_errno(errno, "listening on " + path));
  }
  return std::unique_ptr<ClosingSocket>(new ClosingSocket(path, std::move(listener), std::move(stop)));
}

ClosingSocket::ClosingSocket(std::string path, Fd listener, Fd stop)
    : path_(std::move(path)), listener_(std::move(listener)), stop_(std::move(stop)), thread_([this] {
        pollfd watched[] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
        while (::poll(watched, 2, -1) >= 0 || errno == EINTR) {
          if (watched[1].revents != 0) return;
          if (watched[0].revents != 0) Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)).reset();
        }
      }) {}

ClosingSocket::~ClosingSocket() {
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
  ::unlink(path_.c_str());
}

}  // namespace neuron::sim
