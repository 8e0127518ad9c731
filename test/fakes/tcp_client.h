#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/base/fd.h"

namespace neuron::fakes {

// One TCP connection to this machine, for tests that speak HTTP by hand. `host`: an IPv4 or IPv6 address;
// `from`: the address of this machine that the connection comes from, "" for any.
class TcpClient {
 public:
  explicit TcpClient(std::uint16_t port, const std::string& host = "127.0.0.1", const std::string& from = "") {
    const Address peer(host, port);
    socket_ = Fd(::socket(peer.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    const Address own(from.empty() ? host : from, 0);
    if (!from.empty() && ::bind(socket_.get(), own.get(), own.length()) != 0) socket_.reset();
    if (::connect(socket_.get(), peer.get(), peer.length()) != 0) socket_.reset();
  }

  [[nodiscard]] bool connected() const { return socket_.valid(); }
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  // False when the peer has closed.
  bool send(std::string_view text) {
    return ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  // Before it asks for much: the kernel keeps no more than this for it, instead of some MB.
  void take_little() {
    const int bytes = 200'000;
    static_cast<void>(::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)));
  }
  void end_sending() { static_cast<void>(::shutdown(socket_.get(), SHUT_WR)); }
  // What there is, `most` bytes of it; "" when the peer has closed or nothing came.
  [[nodiscard]] std::string receive_some(std::size_t most, std::chrono::milliseconds patience) {
    std::string some(most, '\0');
    pollfd wait{socket_.get(), POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(patience.count())) <= 0) return "";
    const ssize_t got = ::recv(socket_.get(), some.data(), some.size(), 0);
    some.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return some;
  }
  // All until the peer closes, or what came until `patience` is over without a byte.
  [[nodiscard]] std::string receive(std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    std::string all;
    char buffer[4096];
    for (;;) {
      pollfd wait{socket_.get(), POLLIN, 0};
      if (::poll(&wait, 1, static_cast<int>(patience.count())) <= 0) return all;
      const ssize_t got = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
      if (got <= 0) return all;
      all.append(buffer, static_cast<std::size_t>(got));
    }
  }

 private:
  class Address {
   public:
    Address(const std::string& host, std::uint16_t port) {
      ipv6_ = host.find(':') != std::string::npos;
      v4_.sin_family = AF_INET;
      v4_.sin_port = htons(port);
      v6_.sin6_family = AF_INET6;
      v6_.sin6_port = htons(port);
      static_cast<void>(ipv6_ ? ::inet_pton(AF_INET6, host.c_str(), &v6_.sin6_addr)
                              : ::inet_pton(AF_INET, host.c_str(), &v4_.sin_addr));
    }
    [[nodiscard]] int family() const { return ipv6_ ? AF_INET6 : AF_INET; }
    [[nodiscard]] socklen_t length() const { return ipv6_ ? sizeof(v6_) : sizeof(v4_); }
    [[nodiscard]] const sockaddr* get() const {
      return ipv6_ ? reinterpret_cast<const sockaddr*>(&v6_) : reinterpret_cast<const sockaddr*>(&v4_);
    }

   private:
    bool ipv6_ = false;
    sockaddr_in v4_{};
    sockaddr_in6 v6_{};
  };

  Fd socket_;
};

struct HttpReply {
  int status = 0;  // 0: no answer
  std::string body;
};

inline HttpReply http_get(std::uint16_t port, const std::string& path, const std::string& host = "127.0.0.1") {
  TcpClient client(port, host);
  if (!client.connected() || !client.send("GET " + path + " HTTP/1.1\r\nHost: test\r\n\r\n")) return {};
  const std::string all = client.receive();
  const std::size_t body = all.find("\r\n\r\n");
  if (!all.starts_with("HTTP/1.1 ") || body == std::string::npos) return {};
  return {std::stoi(all.substr(9, 3)), all.substr(body + 4)};
}

}  // namespace neuron::fakes
