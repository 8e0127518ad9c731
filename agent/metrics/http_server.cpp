#include "agent/metrics/http_server.h"

#include <microhttpd.h>

#include <utility>

#include "agent/metrics/listen_socket.h"

namespace neuron::metrics {
namespace {

struct EndResponse {
  void operator()(MHD_Response* response) const { MHD_destroy_response(response); }
};
using Response = std::unique_ptr<MHD_Response, EndResponse>;

MHD_Result send(MHD_Connection* connection, HttpAnswer answer) {
  const Response response(
      MHD_create_response_from_buffer(answer.body.size(), answer.body.data(), MHD_RESPMEM_MUST_COPY));
  if (!response) return MHD_NO;
  const auto add = [&](const char* name, const char* value) {
    return MHD_add_response_header(response.get(), name, value) == MHD_YES;
  };
  // One answer per connection: what is not open needs no limit.
  if (!add("Content-Type", "text/plain; charset=utf-8") || !add("Connection", "close") ||
      (answer.status == MHD_HTTP_METHOD_NOT_ALLOWED && !add("Allow", "GET, HEAD"))) {
    return MHD_NO;
  }
  return MHD_queue_response(connection, static_cast<unsigned>(answer.status), response.get());
}

}  // namespace

struct HttpServer::Daemon {
  Handler handler;
  MHD_Daemon* running = nullptr;

  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* path, const char* method,
                               const char* /*version*/, const char* /*body*/, std::size_t* /*body_bytes*/,
                               void** /*of_request*/) {
    const std::string_view asked(method);
    if (asked != MHD_HTTP_METHOD_GET && asked != MHD_HTTP_METHOD_HEAD) {
      return send(connection, {MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n"});
    }
    return send(connection, static_cast<Daemon*>(self)->handler(path));
  }

  // Paths are compared as they are sent.
  static std::size_t leave_escaped(void* /*self*/, MHD_Connection* /*connection*/, char* text) {
    return std::string_view(text).size();
  }
};

HttpServer::HttpServer(std::unique_ptr<Daemon> daemon, std::uint16_t port) : daemon_(std::move(daemon)), port_(port) {}

HttpServer::~HttpServer() {
  MHD_stop_daemon(daemon_->running);  // closes the socket
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const ListenAddress& address, Handler handler) {
  TRY_ASSIGN(Fd socket, open_listen_socket(address));
  const std::uint16_t port = port_of(socket);
  auto daemon = std::make_unique<Daemon>();
  daemon->handler = std::move(handler);
  const unsigned flags = MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC;
  daemon->running =
      MHD_start_daemon(flags, 0, nullptr, nullptr, &Daemon::on_request, daemon.get(), MHD_OPTION_LISTEN_SOCKET,
                       socket.get(), MHD_OPTION_CONNECTION_LIMIT, kMostClients, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
                       kMostClientsOfOneHost, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kRequestBytes,
                       MHD_OPTION_CONNECTION_TIMEOUT, static_cast<unsigned>(kIdle.count()),
                       MHD_OPTION_UNESCAPE_CALLBACK, &Daemon::leave_escaped, nullptr, MHD_OPTION_END);
  if (daemon->running == nullptr) return fail(ErrorCode::internal, "serving HTTP on " + to_string(address));
  static_cast<void>(socket.release());  // the daemon's
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(daemon), port));
}

}  // namespace neuron::metrics
