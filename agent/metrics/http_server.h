#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "agent/base/listen_address.h"
#include "agent/base/result.h"

namespace neuron::metrics {

struct HttpAnswer {
  int status = 200;
  std::string body;  // plain text
};

// Answers GET and HEAD with what one function says of a path, and nothing else: no files, no state that a request could
// change. One thread waits for all clients, so a slow one holds up nobody; what each may send is bounded. The only user
// of libevent (docs/adr/0010-libevent.md). /healthz and /readyz are answered through it (tools/neuron-agent/probes.h);
// there is no /metrics as yet.
class HttpServer {
 public:
  // `path` without the query, as it was sent otherwise: foreign, even spaces and control bytes may be in it. On the
  // server's thread: must not block, must not throw.
  using Handler = std::function<HttpAnswer(std::string_view path)>;

  static constexpr unsigned kMostClients = 64;           // at once; more wait in the kernel's queue
  static constexpr unsigned kMostClientsOfOneHost = 16;  // at once; more are turned away
  static constexpr std::size_t kRequestBytes = 8192;     // request line and headers; a body is refused
  static constexpr std::chrono::seconds kIdle{3};        // a client that neither sends nor reads is dropped

  // Listens when it returns. Errors: as of open_listen_socket, internal.
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> start(const ListenAddress& address, Handler handler);
  ~HttpServer();  // drops every client; at once
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  class Loop;
  HttpServer(std::unique_ptr<Loop> loop, std::uint16_t port);

  std::unique_ptr<Loop> loop_;
  const std::uint16_t port_;
};

}  // namespace neuron::metrics
