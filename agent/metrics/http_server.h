#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agent/base/clock.h"
#include "agent/base/fd.h"
#include "agent/base/result.h"

struct ssl_ctx_st;
struct ssl_st;

namespace neuron::metrics {

// Paths of a server's certificate (with the chain to its issuer) and its key, as PEM. They may be links, as in a secret
// that the kubelet mounts, and may be replaced at any time.
struct TlsFiles {
  std::string certificate;
  std::string key;
  // Called on the server's thread after the files were reread: "" when the new pair is used, else why it cannot be,
  // once per reason; then the previous pair stays in use. Must not block. May be empty.
  std::function<void(const std::string& problem)> on_change{};
};

// Server certificate and key. TLS 1.2 and newer, without renegotiation, resumption or tickets, so that a client costs
// one handshake and leaves no state. One thread; rereads the two files when they have changed.
class TlsIdentity {
 public:
  static constexpr std::chrono::seconds kCheckInterval{1};

  // Errors: from errno, data_corrupt (no PEM, a key that is encrypted or not the certificate's), naming the file.
  [[nodiscard]] static Result<std::unique_ptr<TlsIdentity>> load(TlsFiles files);
  ~TlsIdentity();
  TlsIdentity(const TlsIdentity&) = delete;
  TlsIdentity& operator=(const TlsIdentity&) = delete;

  // The server side of one connection, owned by the caller; nullptr: no memory. Checks the files first, at most every
  // kCheckInterval.
  [[nodiscard]] ssl_st* new_session(SteadyTime now);

 private:
  // Identifies the file at the end of the path: differs when it was replaced.
  struct Stamp {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t size = 0;
    std::int64_t modified_ns = 0;
    std::int64_t changed_ns = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  struct Stamps {
    Stamp certificate;
    Stamp key;
    friend bool operator==(const Stamps&, const Stamps&) = default;
  };
  struct FreeContext {
    void operator()(ssl_ctx_st* context) const;
  };
  using Context = std::unique_ptr<ssl_ctx_st, FreeContext>;

  explicit TlsIdentity(TlsFiles files) : files_(std::move(files)) {}
  [[nodiscard]] static Result<Stamp> stamp_of(const std::string& path);
  [[nodiscard]] Result<Stamps> stamps() const;
  [[nodiscard]] Result<Context> read_pair() const;
  void reload_if_changed();

  const TlsFiles files_;
  Context context_;
  Stamps loaded_;             // that context_ was read from
  SteadyTime checked_at_{};   // last
  std::string last_problem_;  // as passed to on_change
};

struct HttpAnswer {
  int status = 200;
  std::string body{};  // text
  std::string content_type = "text/plain; charset=utf-8";
  // In place of `body` where it is not null: a long text that many answers share. It is never copied, and kept until
  // it was sent to the last client, kAnswerDue at most.
  std::shared_ptr<const std::string> shared{};
};

// A request's path and header; foreign, may contain spaces and control bytes.
struct HttpRequest {
  std::string_view path;    // without the query, as it was sent otherwise
  std::string_view accept;  // the header Accept, the first of them; "" = none
};

// Answers GET and HEAD with the result of one function: no files, no state that a request could change. One thread
// serves all clients without blocking, so a slow one delays no other; the size and duration of a request are bounded.
// Short answers are always possible: long ones are refused with 503 before they take all places, and of the clients
// that have not sent a request yet the oldest is dropped for a new one. So a probe of the kubelet is answered whatever
// other clients do. Over TLS where files for that are given. The only user of libevent
// (docs/adr/0010-libevent.md). The paths are in agent/metrics/endpoints.h.
class HttpServer {
 public:
  // On the server's thread: must not block, must not throw.
  using Handler = std::function<HttpAnswer(const HttpRequest& request)>;

  static constexpr unsigned kMostClients = 64;           // at once; more wait in the kernel's queue
  static constexpr unsigned kMostClientsOfOneHost = 16;  // at once; of more the oldest without a request is dropped
  static constexpr unsigned kMostLong = 48;              // answers of more than kShortBytes at once; more get 503
  static constexpr unsigned kMostLongOfOneHost = 12;     // the same
  static constexpr std::size_t kShortBytes = 16384;      // an answer that the kernel takes at once
  static constexpr std::size_t kRequestBytes = 8192;     // request line and headers; a body is refused
  static constexpr unsigned kRequestLines = 100;         // the same; each costs memory, however short. More: dropped
  static constexpr std::chrono::seconds kIdle{3};        // a client that neither sends nor reads is dropped
  static constexpr std::chrono::seconds kAnswerDue{10};  // from connecting to the last byte, however busy it is

  // Listens when it returns. `tls`: nullopt for plain HTTP; plain HTTP is not answered where it is given. Errors: as of
  // open_listen_socket and TlsIdentity::load, internal.
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> start(const ListenAddress& address, Handler handler,
                                                                 std::optional<TlsFiles> tls = std::nullopt);
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
