#include "agent/base/fd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <system_error>
#include <utility>

#include "agent/base/parse.h"

namespace neuron {
namespace {

bool is_regular(const Fd& file) {
  struct stat info {};
  return ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
}

// Removes anything else in the file's place (a FIFO would block, a link lead elsewhere).
Result<Fd> open_fresh(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  Fd file(::open(path.c_str(), kFlags | O_TRUNC, 0644));
  if (file.valid() && is_regular(file)) return file;
  if (!file.valid() && errno != ENXIO && errno != ELOOP) return fail(error_from_errno(errno, "writing " + path));
  if (::unlink(path.c_str()) != 0) return fail(error_from_errno(errno, "removing " + path));
  file = Fd(::open(path.c_str(), kFlags | O_EXCL, 0644));
  if (!file.valid()) return fail(error_from_errno(errno, "writing " + path));
  return file;
}

std::string spare_of(const std::string& path) {
  return path + ".spare";
}

bool is_address(int family, const std::string& host) {
  if (host.find('\0') != std::string::npos) return false;  // inet_pton would stop there
  in6_addr parsed{};                                       // the larger of the two
  return ::inet_pton(family, host.c_str(), &parsed) == 1;
}

// "8000", not " 8000" and not "+8000".
std::optional<std::uint16_t> parse_port(std::string_view text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) return {};
  const auto port = parse_int(text, 0, 65535);
  if (!port) return {};
  return static_cast<std::uint16_t>(*port);
}

constexpr int kBacklog = 64;

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t length = 0;

  [[nodiscard]] int family() const { return bytes.ss_family; }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

template <typename Address>
SocketAddress generic(const Address& address) {
  SocketAddress all;
  std::memcpy(&all.bytes, &address, sizeof(address));
  all.length = sizeof(address);
  return all;
}

SocketAddress ipv4(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  static_cast<void>(::inet_pton(AF_INET, host.c_str(), &address.sin_addr));
  return generic(address);
}

SocketAddress ipv6(const std::string& host, std::uint16_t port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  static_cast<void>(::inet_pton(AF_INET6, host.c_str(), &address.sin6_addr));
  return generic(address);
}

enum class Accepts { own_family, both_families };

Result<Fd> listen_on(const SocketAddress& address, Accepts accepts, const std::string& name) {
  const auto failed = [&name](const char* what) {
    const int reason = errno;
    Error error = error_from_errno(reason, std::string(what) + " " + name);
    if (reason == EADDRINUSE) error.code = ErrorCode::unavailable;
    if (reason == EADDRNOTAVAIL) error.code = ErrorCode::not_found;
    return fail(std::move(error));
  };
  Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return failed("opening a socket for");
  const int on = 1;
  const int own_family = accepts == Accepts::own_family ? 1 : 0;
  // Connections of an agent that has just ended may linger on the port.
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0) return failed("preparing");
  if (address.family() == AF_INET6 &&
      ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &own_family, sizeof(own_family)) != 0) {
    return failed("preparing");
  }
  if (::bind(socket.get(), address.get(), address.length) != 0) return failed("listening on");
  if (::listen(socket.get(), kBacklog) != 0) return failed("listening on");
  return socket;
}

}  // namespace

Result<std::string> read_all(int fd, std::size_t max_bytes, std::string_view path) {
  std::string text;
  for (;;) {
    const std::size_t used = text.size();
    text.resize(used + std::min<std::size_t>(65536, max_bytes + 1 - used));
    const ssize_t count = ::read(fd, text.data() + used, text.size() - used);
    text.resize(used + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(error_from_errno(errno, path));
    if (count == 0) return text;
    if (text.size() <= max_bytes) continue;
    return fail(ErrorCode::data_corrupt, std::string(path) + " has more than " + std::to_string(max_bytes) + " bytes");
  }
}

Result<void> write_all(int fd, std::string_view text, std::string_view path) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(error_from_errno(errno, path));
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<std::string> read_text_file(const std::string& path, std::size_t max_bytes) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.valid()) return fail(error_from_errno(errno, path));
  return read_all(file.get(), max_bytes, path);
}

Result<void> write_by_rename(const std::string& path, std::string_view text) {
  const std::string fresh = path + ".new";
  {
    TRY_ASSIGN(const Fd file, open_fresh(fresh));
    if (auto written = write_all(file.get(), text, fresh); !written) {
      [[maybe_unused]] const int cut = ::ftruncate(file.get(), 0);  // a partial text would take space on a full disk
      return written;
    }
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) return fail(error_from_errno(errno, "renaming to " + path));
  return {};
}

Result<void> keep_spare(const std::string& path, std::size_t bytes) {
  constexpr std::size_t kBlock = 512;  // of st_blocks
  const std::string spare = spare_of(path);
  const Fd file(::open(spare.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644));
  struct stat info {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) return fail(error_from_errno(errno, "writing " + spare));
  if (static_cast<std::size_t>(info.st_blocks) * kBlock >= bytes) return {};
  const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
  if (error == 0 || (error != ENOSPC && error != EDQUOT)) return {};
  return fail(error_from_errno(error, "reserving space in " + spare));
}

Result<void> write_into_spare(const std::string& path, std::string_view text) {
  const std::string spare = spare_of(path);
  {
    const Fd file(::open(spare.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file.valid()) return fail(error_from_errno(errno, "writing " + spare));
    TRY(write_all(file.get(), text, spare));
    if (::ftruncate(file.get(), static_cast<off_t>(text.size())) != 0) return fail(error_from_errno(errno, spare));
  }
  if (::renameat2(AT_FDCWD, spare.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) return {};
  if (::rename(spare.c_str(), path.c_str()) != 0) return fail(error_from_errno(errno, "renaming to " + path));
  return {};
}

Result<bool> keep_file(const std::string& path, const std::string& text) {
  if (text.empty()) {
    if (::unlink(path.c_str()) == 0) return true;
    if (errno == ENOENT) return false;
    return fail(error_from_errno(errno, "removing " + path));
  }
  if (const auto old = read_text_file(path, text.size()); old && *old == text) return false;
  auto written = write_by_rename(path, text);
  if (!written && written.error().code == ErrorCode::not_found) {
    const std::filesystem::path directory = std::filesystem::path(path).parent_path();
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error) return fail(error_from_errno(error.value(), "making " + directory.string()));
    written = write_by_rename(path, text);
  }
  if (!written) return fail(std::move(written).error());
  return true;
}

bool is_removed_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && info.st_nlink == 0;
}

void open_standard_streams() {
  std::signal(SIGCHLD, SIG_DFL);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // Gets the lowest free descriptor, which is this one. Opened for the unused direction.
    static_cast<void>(::open("/dev/null", (stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_NOCTTY));
  }
}

DescriptorLimit raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const rlim_t before = limit.rlim_cur;
  const rlim_t wanted = std::min<rlim_t>(limit.rlim_max, kMostDescriptors);  // RLIM_INFINITY is the largest number
  if (wanted <= before) return {before, before};
  limit.rlim_cur = wanted;
  const bool raised = ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
  return {before, raised ? wanted : before};
}

Result<ListenAddress> parse_listen_address(std::string_view text) {
  const auto misuse = [&] {
    return fail(ErrorCode::invalid_argument, '"' + printable(text) +
                                                 "\" is not an address: use HOST:PORT with a numeric host, as in "
                                                 "127.0.0.1:8000 or [::1]:8000, or :8000 for every address");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return misuse();
  const auto port = parse_port(text.substr(colon + 1));
  if (!port) return misuse();
  std::string_view host = text.substr(0, colon);
  if (host.empty()) return ListenAddress{"", *port};
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  if (!is_address(brackets ? AF_INET6 : AF_INET, std::string(host))) return misuse();
  return ListenAddress{std::string(host), *port};
}

std::string to_string(const ListenAddress& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return (brackets ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

Result<Fd> open_listen_socket(const ListenAddress& address) {
  const std::string name = to_string(address);
  if (address.host.find(':') != std::string::npos) {
    return listen_on(ipv6(address.host, address.port), Accepts::own_family, name);
  }
  if (!address.host.empty()) return listen_on(ipv4(address.host, address.port), Accepts::own_family, name);
  auto both = listen_on(ipv6("::", address.port), Accepts::both_families, name);
  const bool no_ipv6 = !both && (both.error().os_errno == EAFNOSUPPORT || both.error().os_errno == EADDRNOTAVAIL);
  return no_ipv6 ? listen_on(ipv4("0.0.0.0", address.port), Accepts::own_family, name) : std::move(both);
}

std::uint16_t port_of(const Fd& socket) {
  sockaddr_storage bytes{};
  socklen_t length = sizeof(bytes);
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bytes), &length) != 0) return 0;
  if (bytes.ss_family == AF_INET6) {
    sockaddr_in6 address{};
    std::memcpy(&address, &bytes, sizeof(address));
    return ntohs(address.sin6_port);
  }
  sockaddr_in address{};
  std::memcpy(&address, &bytes, sizeof(address));
  return ntohs(address.sin_port);
}

}  // namespace neuron
