// Whatever a client sends to the metrics server: it gets an HTTP answer or none, soon, and the path that the handler is
// asked for is within the bounds of a request.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "agent/base/fd.h"
#include "agent/metrics/http_server.h"

namespace {

using neuron::metrics::HttpServer;

void require(bool holds) {
  if (!holds) std::abort();
}

neuron::metrics::HttpAnswer echo(const neuron::metrics::HttpRequest& request) {
  const std::string_view path = request.path;
  require(path.size() <= HttpServer::kRequestBytes && path.find_first_of("?#\n") == std::string_view::npos);
  return {200, std::string(path)};
}

HttpServer& server() {
  static const auto started = HttpServer::start({"127.0.0.1", 0}, echo);
  require(started.has_value());
  return **started;
}

// From another address of this machine each time: the ports of one alone are used up soon.
neuron::Fd connected() {
  static std::uint32_t count = 0;
  neuron::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  const timeval patience{10, 0};
  require(::setsockopt(socket.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on) == 0 &&
          ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(0x7f000001U + ++count % 0xffff00U);
  require(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  address.sin_port = htons(server().port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  require(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return socket;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const neuron::Fd client = connected();
  static_cast<void>(::send(client.get(), data, size, MSG_NOSIGNAL));  // all of it, or as much as the server wants
  static_cast<void>(::shutdown(client.get(), SHUT_WR));
  std::string answer;
  std::array<char, 4096> buffer{};
  ssize_t got = 0;
  while ((got = ::recv(client.get(), buffer.data(), buffer.size(), 0)) > 0) {
    answer.append(buffer.data(), static_cast<std::size_t>(got));
    require(answer.size() <= 4 * HttpServer::kRequestBytes);
  }
  require(got == 0 || errno == ECONNRESET);                // not the end of our patience
  require(answer.empty() || answer.starts_with("HTTP/"));  // libevent answers in the version that it was asked in
  return 0;
}
