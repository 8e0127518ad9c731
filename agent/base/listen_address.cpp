#include "agent/base/listen_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "agent/base/parse.h"

namespace neuron {
namespace {

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
