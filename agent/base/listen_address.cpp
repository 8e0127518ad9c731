#include "agent/base/listen_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <optional>

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

}  // namespace neuron
