#include "agent/metrics/http_server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace neuron::metrics {
namespace {

constexpr timeval kAcceptBackoff{1, 0};  // pause when the process has no descriptor left for a client
constexpr int kMethodNotAllowed = 405;
constexpr int kUnavailable = 503;
constexpr std::size_t kWriteBytes = 256 << 10;  // to one client per turn; libevent's default: 16 KiB

// The address as bytes, without the port; one name for all unknown ones.
std::string peer_of(int socket) {
  sockaddr_storage peer{};
  socklen_t length = sizeof(peer);
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return "unknown";
  const char* const bytes = reinterpret_cast<const char*>(&peer);
  if (peer.ss_family == AF_INET6) return {bytes + offsetof(sockaddr_in6, sin6_addr), sizeof(in6_addr)};
  return {bytes + offsetof(sockaddr_in, sin_addr), sizeof(in_addr)};
}

// Reads the clock for each timeout: the time at the start of a long round of the loop would drop a new client.
event_base* new_base() {
  const std::unique_ptr<event_config, void (*)(event_config*)> config(event_config_new(), event_config_free);
  if (!config || event_config_set_flag(config.get(), EVENT_BASE_FLAG_NO_CACHE_TIME) != 0) return nullptr;
  return event_base_new_with_config(config.get());
}

// Without a copy: the buffer holds a reference until the text has been sent or its client has left.
void add_shared(evbuffer* output, const std::shared_ptr<const std::string>& text) {
  auto held = std::make_unique<std::shared_ptr<const std::string>>(text);
  const auto let_go = [](const void* /*data*/, std::size_t /*size*/, void* reference) {
    delete static_cast<std::shared_ptr<const std::string>*>(reference);
  };
  if (evbuffer_add_reference(output, text->data(), text->size(), let_go, held.get()) == 0) {
    static_cast<void>(held.release());
  }
}

void send(evhttp_request* request, const HttpAnswer& answer) {
  const std::string& body = answer.shared ? *answer.shared : answer.body;
  evkeyvalq* const headers = evhttp_request_get_output_headers(request);
  const auto add = [headers](const char* name, const std::string& value) {
    static_cast<void>(evhttp_add_header(headers, name, value.c_str()));
  };
  add("Content-Type", answer.content_type);
  add("Content-Length", std::to_string(body.size()));
  add("Connection", "close");  // one answer per connection: idle ones need no limit
  if (answer.status == kMethodNotAllowed) add("Allow", "GET, HEAD");
  if (evhttp_request_get_command(request) != EVHTTP_REQ_HEAD) {
    evbuffer* const output = evhttp_request_get_output_buffer(request);
    if (answer.shared) add_shared(output, answer.shared);
    if (!answer.shared) static_cast<void>(evbuffer_add(output, body.data(), body.size()));
  }
  bufferevent* const stream = evhttp_connection_get_bufferevent(evhttp_request_get_connection(request));
  evhttp_send_reply(request, answer.status, nullptr, nullptr);
  // Further input stays in the kernel, and a half-closed connection does not end the answer.
  static_cast<void>(bufferevent_disable(stream, EV_READ));
}

}  // namespace

// libevent's HTTP server with limits on the number of clients, which libevent neither counts nor reports as closed. So
// a second reference to each client's stream is held and checked after every round of the loop: a stream without
// another reference has no client any more.
class HttpServer::Loop {
 public:
  Loop(Handler handler, std::unique_ptr<TlsIdentity> tls) : handler_(std::move(handler)), tls_(std::move(tls)) {}
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Takes `socket` if it succeeds.
  [[nodiscard]] bool open(Fd& socket);
  void start() {
    thread_ = std::thread([this] { run(); });
  }

 private:
  struct Client {
    bufferevent* stream;
    SteadyTime came_at;
    bool unwanted = false;  // is to be dropped, or was
    bool has_asked = false;
    bool is_long = false;  // its answer
    unsigned lines = 0;    // that it sent
    std::string host{};    // as of peer_of; empty: came in this round
  };

  void run();
  void settle();
  void turn_away_crowd();
  void drop_overdue();
  static void drop(Client& client);
  bool drop_oldest_waiting(const std::string* host);
  [[nodiscard]] Client* client_of(const bufferevent* stream);
  [[nodiscard]] bool may_be_long(const Client& client) const;
  [[nodiscard]] bufferevent* new_stream();

  static bufferevent* on_client(event_base* base, void* self);
  static void on_accept_error(evconnlistener* listener, void* http);
  static void on_backoff_end(int socket, short what, void* listener);
  static void on_input(evbuffer* input, const evbuffer_cb_info* info, void* self);
  static void on_request(evhttp_request* request, void* self);
  static void on_stop(int socket, short what, void* self);
  static void on_due(int /*socket*/, short /*what*/, void* /*self*/) {}  // no-op: the event only wakes the loop

  const Handler handler_;
  const std::unique_ptr<TlsIdentity> tls_;  // nullptr: plain HTTP
  Fd stop_;                                 // eventfd
  event_base* base_ = nullptr;
  event* stop_event_ = nullptr;
  event* due_event_ = nullptr;  // pending while there are clients
  evhttp* http_ = nullptr;
  evconnlistener* listener_ = nullptr;  // http_'s
  std::vector<Client> clients_;
  bool full_ = false;  // listener_ is disabled until a client has left
  std::thread thread_;
};

HttpServer::Loop::~Loop() {
  if (thread_.joinable()) {
    static_cast<void>(::eventfd_write(stop_.get(), 1));
    thread_.join();
  }
  if (http_ != nullptr) evhttp_free(http_);  // closes the listening socket
  for (const Client& client : clients_) static_cast<void>(bufferevent_decref(client.stream));
  for (event* const one : {stop_event_, due_event_}) {
    if (one != nullptr) event_free(one);
  }
  if (base_ != nullptr) event_base_free(base_);
}

bool HttpServer::Loop::open(Fd& socket) {
  stop_ = Fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  base_ = new_base();
  if (!stop_.valid() || base_ == nullptr) return false;
  stop_event_ = event_new(base_, stop_.get(), EV_READ, &Loop::on_stop, this);
  due_event_ = event_new(base_, -1, 0, &Loop::on_due, this);
  http_ = evhttp_new(base_);
  if (due_event_ == nullptr || stop_event_ == nullptr || event_add(stop_event_, nullptr) != 0 || http_ == nullptr)
    return false;
  evhttp_set_bevcb(http_, &Loop::on_client, this);
  evhttp_set_gencb(http_, &Loop::on_request, this);
  // All that libevent knows go to on_request, which answers with the right status; others it refuses itself (501).
  evhttp_set_allowed_methods(http_, 0x7fff);
  evhttp_set_max_headers_size(http_, kRequestBytes);
  evhttp_set_max_body_size(http_, 0);
  evhttp_set_timeout(http_, static_cast<int>(kIdle.count()));
  evhttp_bound_socket* const bound = evhttp_accept_socket_with_handle(http_, socket.get());
  if (bound == nullptr) return false;
  static_cast<void>(socket.release());
  listener_ = evhttp_bound_socket_get_listener(bound);
  evconnlistener_set_error_cb(listener_, &Loop::on_accept_error);
  return true;
}

HttpServer::Loop::Client* HttpServer::Loop::client_of(const bufferevent* stream) {
  const auto found = std::ranges::find_if(clients_, [stream](const Client& client) { return client.stream == stream; });
  return found == clients_.end() ? nullptr : &*found;
}

void HttpServer::Loop::run() {
  // libevent writes without MSG_NOSIGNAL; the signal goes to the writing thread, which blocks it.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  static_cast<void>(::pthread_sigmask(SIG_BLOCK, &pipe, nullptr));
  while (event_base_loop(base_, EVLOOP_ONCE) == 0 && event_base_got_break(base_) == 0) settle();
}

void HttpServer::Loop::settle() {
  std::erase_if(clients_, [](const Client& client) {
    if (bufferevent_decref(client.stream) == 1) return true;
    bufferevent_incref(client.stream);
    return false;
  });
  turn_away_crowd();
  drop_overdue();
  const bool was_full = std::exchange(full_, clients_.size() >= kMostClients);
  if (!full_) {
    if (was_full) static_cast<void>(evconnlistener_enable(listener_));
    return;
  }
  static_cast<void>(evconnlistener_disable(listener_));  // the timer of on_accept_error may have enabled it
  constexpr int kRoom = 8;
  for (int made = 0; made < kRoom && drop_oldest_waiting(nullptr); ++made) {
  }
}

void HttpServer::Loop::turn_away_crowd() {
  for (Client& client : clients_) {
    if (!client.host.empty()) continue;
    client.host = peer_of(bufferevent_getfd(client.stream));
    if (client.unwanted) drop(client);
    const auto of_host = std::ranges::count_if(
        clients_, [&client](const Client& other) { return !other.unwanted && other.host == client.host; });
    if (of_host > kMostClientsOfOneHost && !drop_oldest_waiting(&client.host)) drop(client);
  }
}

// Of the clients without a request yet; `host`: of that one, nullptr: of all. False: there is none. Newest is last.
bool HttpServer::Loop::drop_oldest_waiting(const std::string* host) {
  const auto found = std::ranges::find_if(clients_, [host](const Client& client) {
    return !client.unwanted && !client.has_asked && (host == nullptr || client.host == *host);
  });
  if (found == clients_.end()) return false;
  drop(*found);
  return true;
}

bool HttpServer::Loop::may_be_long(const Client& client) const {
  const auto count = [this](auto counts) { return std::ranges::count_if(clients_, counts); };
  return count([](const Client& other) { return other.is_long; }) < kMostLong &&
         count([&client](const Client& other) { return other.is_long && other.host == client.host; }) <
             kMostLongOfOneHost;
}

// libevent then sees the end of the connection and frees it.
void HttpServer::Loop::drop(Client& client) {
  client.unwanted = true;
  static_cast<void>(::shutdown(bufferevent_getfd(client.stream), SHUT_RDWR));
}

// The oldest client comes first.
void HttpServer::Loop::drop_overdue() {
  const SteadyTime now = std::chrono::steady_clock::now();
  for (Client& client : clients_) {
    if (!client.unwanted && now - client.came_at >= kAnswerDue) drop(client);
  }
  const auto waiting = std::ranges::find_if(clients_, [](const Client& client) { return !client.unwanted; });
  if (waiting == clients_.end() || event_pending(due_event_, EV_TIMEOUT, nullptr) != 0) return;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(waiting->came_at + kAnswerDue - now).count();
  const timeval wait{left / 1000, (left % 1000) * 1000};
  static_cast<void>(event_add(due_event_, &wait));
}

// nullptr: no memory.
bufferevent* HttpServer::Loop::new_stream() {
  if (!tls_) return bufferevent_socket_new(base_, -1, BEV_OPT_CLOSE_ON_FREE);
  SSL* const session = tls_->new_session(std::chrono::steady_clock::now());
  if (session == nullptr) return nullptr;
  bufferevent* const stream =
      bufferevent_openssl_socket_new(base_, -1, session, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
  if (stream == nullptr) return nullptr;  // with BEV_OPT_CLOSE_ON_FREE the session was freed
  bufferevent_openssl_set_allow_dirty_shutdown(stream, 1);
  return stream;
}

bufferevent* HttpServer::Loop::on_client(event_base* base, void* self) {
  Loop& loop = *static_cast<Loop*>(self);
  bufferevent* stream = loop.new_stream();
  // Without one libevent would make a plain one and answer the client without TLS.
  const bool unwanted = stream == nullptr;
  if (unwanted) stream = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
  if (stream == nullptr) return nullptr;
  bufferevent_incref(stream);
  static_cast<void>(bufferevent_set_max_single_write(stream, kWriteBytes));
  static_cast<void>(evbuffer_add_cb(bufferevent_get_input(stream), &Loop::on_input, &loop));
  loop.clients_.push_back({stream, std::chrono::steady_clock::now(), unwanted});
  if (loop.clients_.size() >= kMostClients) {
    loop.full_ = true;
    static_cast<void>(evconnlistener_disable(loop.listener_));
  }
  return stream;
}

// Back off, or accept() would spin: the client still waits.
void HttpServer::Loop::on_accept_error(evconnlistener* listener, void* /*http*/) {
  static_cast<void>(evconnlistener_disable(listener));
  static_cast<void>(
      event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, &on_backoff_end, listener, &kAcceptBackoff));
}

void HttpServer::Loop::on_backoff_end(int /*socket*/, short /*what*/, void* listener) {
  static_cast<void>(evconnlistener_enable(static_cast<evconnlistener*>(listener)));
}

// Before libevent parses the input: each line becomes a header, at some 110 bytes.
void HttpServer::Loop::on_input(evbuffer* input, const evbuffer_cb_info* info, void* self) {
  if (info->n_added == 0) return;
  Loop& loop = *static_cast<Loop*>(self);
  const auto client = std::ranges::find_if(
      loop.clients_, [input](const Client& one) { return bufferevent_get_input(one.stream) == input; });
  if (client == loop.clients_.end()) return;
  evbuffer_ptr at{};
  std::array<evbuffer_iovec, 8> parts{};
  if (evbuffer_ptr_set(input, &at, info->orig_size, EVBUFFER_PTR_SET) != 0) return;
  const int count = evbuffer_peek(input, static_cast<ev_ssize_t>(info->n_added), &at, parts.data(), parts.size());
  const auto filled = static_cast<std::size_t>(std::max(count, 0));
  for (const evbuffer_iovec& part : std::span(parts).first(std::min(filled, parts.size()))) {
    const char* const bytes = static_cast<const char*>(part.iov_base);
    client->lines += static_cast<unsigned>(std::count(bytes, bytes + part.iov_len, '\n'));
  }
  if (client->lines <= kRequestLines || client->has_asked) return;
  static_cast<void>(evbuffer_drain(input, evbuffer_get_length(input)));
  drop(*client);
}

void HttpServer::Loop::on_request(evhttp_request* request, void* self) {
  Loop& loop = *static_cast<Loop*>(self);
  Client* const client = loop.client_of(evhttp_connection_get_bufferevent(evhttp_request_get_connection(request)));
  if (client != nullptr) client->has_asked = true;
  const evhttp_cmd_type method = evhttp_request_get_command(request);
  if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
    return send(request, {kMethodNotAllowed, "only GET and HEAD\n"});
  }
  const char* const path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
  const char* const accept = evhttp_find_header(evhttp_request_get_input_headers(request), "Accept");
  const HttpAnswer answer = loop.handler_({path == nullptr ? "" : path, accept == nullptr ? "" : accept});
  const bool is_long = (answer.shared ? answer.shared->size() : answer.body.size()) > kShortBytes;
  if (client != nullptr && is_long && !loop.may_be_long(*client)) {
    return send(request, {kUnavailable, "too many concurrent clients; try again later\n"});
  }
  if (client != nullptr) client->is_long = is_long;
  send(request, answer);
}

void HttpServer::Loop::on_stop(int /*socket*/, short /*what*/, void* self) {
  static_cast<void>(event_base_loopbreak(static_cast<Loop*>(self)->base_));
}

HttpServer::HttpServer(std::unique_ptr<Loop> loop, std::uint16_t port) : loop_(std::move(loop)), port_(port) {}

HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::start(const ListenAddress& address, Handler handler,
                                                      std::optional<TlsFiles> tls) {
  std::unique_ptr<TlsIdentity> identity;
  if (tls) {
    TRY_ASSIGN(identity, TlsIdentity::load(*std::move(tls)));
  }
  TRY_ASSIGN(Fd socket, open_listen_socket(address));
  const std::uint16_t port = port_of(socket);
  auto loop = std::make_unique<Loop>(std::move(handler), std::move(identity));
  if (!loop->open(socket)) return fail(ErrorCode::internal, "serving HTTP on " + to_string(address));
  loop->start();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(loop), port));
}

}  // namespace neuron::metrics
