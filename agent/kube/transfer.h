#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "agent/base/result.h"
#include "agent/kube/cluster_access.h"

// HTTP exchanges with the API server; the only user of libcurl.
namespace neuron::kube {

struct HttpRequest {
  const char* verb = "GET";
  std::string target;                       // path and query, encoded: "/api/v1/nodes/n1?x=y"
  std::string accept = "application/json";  // media type
  std::string content_type{};               // of `body`
  std::string_view body{};                  // must live until the exchange has ended; "" = none
  // libcurl repeats a request by itself when a kept connection is lost before a byte of the answer, though the server
  // may have executed it. True: uses a new connection, which excludes that.
  bool only_once = false;
};

struct HttpAnswer {
  int status = 0;
  std::string body;
  std::chrono::seconds retry_after{0};  // header Retry-After; 0 = none
};

// Bounds of one exchange.
struct HttpLimits {
  std::chrono::milliseconds deadline{5000};       // name, connection, TLS, answer; of a stream: until it begins
  std::size_t max_bytes = std::size_t{1} << 20U;  // of the answer's body; of a stream's, when it is an error
  std::chrono::milliseconds idle{std::chrono::minutes(2)};  // of a stream: without a byte
  std::size_t max_line = std::size_t{4} << 20U;             // of a stream
};

// A connection that is kept between exchanges, as long as the server keeps it and its certificates are trusted by the
// same authority; one exchange at a time. The server's certificate is always verified against `access.ca_pem` alone,
// redirects are not followed, and no proxy is used: the token goes to that server alone. With `access.unix_socket` it
// is a connection to that socket.
//
// Errors, each with the URL and what to do: unavailable (no process listens, unknown name, the connection broke,
// stopped), deadline_exceeded, failed_precondition (the certificate is not signed by that CA or names another server),
// data_corrupt (more than the bounds, or no HTTP), internal. A status of 400 and more is an answer. A requested stop
// ends an exchange at once. Movable; not synchronised; blocks up to the deadline.
class Connection {
 public:
  using OnLine = std::function<bool(std::string_view line)>;

  Connection();
  ~Connection();
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;

  [[nodiscard]] Result<HttpAnswer> call(const ClusterAccess& access, const HttpRequest& request,
                                        const HttpLimits& limits, const std::stop_token& stop);

  // Implements kube::Api::stream. An end without an error (on_line, stop, the server, idleness) returns the status
  // alone, 200 where it was stopped before it had begun.
  [[nodiscard]] Result<HttpAnswer> stream(const ClusterAccess& access, const HttpRequest& request,
                                          const HttpLimits& limits, const OnLine& on_line, const std::stop_token& stop);

 private:
  struct Handles;
  std::unique_ptr<Handles> handles_;
};

// Splits input that arrives in pieces of any size into lines; stores at most one line. Pure; not synchronised.
class LineSplitter {
 public:
  using OnLine = std::function<bool(std::string_view line)>;
  enum class State {
    going,     // more may come
    ended,     // on_line returned false
    too_long,  // a line of more than max_line bytes, its end not counted
  };

  explicit LineSplitter(std::size_t max_line) : max_line_(max_line) {}

  // Passes each complete line to `on_line`, without its "\n" or "\r\n" and without empty lines. The rest waits for the
  // next piece. After a state other than `going` it takes nothing more.
  State take(std::string_view piece, const OnLine& on_line) {
    while (state_ == State::going && !piece.empty()) {
      const std::size_t end = piece.find('\n');
      const std::string_view part = piece.substr(0, end);
      if (part.size() > max_line_ - begun_.size()) {
        state_ = State::too_long;
        break;
      }
      if (end == std::string_view::npos) {
        begun_.append(part);
        break;
      }
      piece.remove_prefix(end + 1);
      finish(part, on_line);
    }
    if (state_ != State::going) begun_ = {};
    return state_;
  }

 private:
  void finish(std::string_view part, const OnLine& on_line) {
    std::string whole;
    if (!begun_.empty()) {
      whole = std::move(begun_);
      begun_ = {};  // a long line does not stay allocated
      part = whole.append(part);
    }
    if (part.ends_with('\r')) part.remove_suffix(1);
    if (!part.empty() && !on_line(part)) state_ = State::ended;
  }

  std::size_t max_line_;
  std::string begun_;  // an incomplete line; at most max_line_ bytes
  State state_ = State::going;
};

}  // namespace neuron::kube
