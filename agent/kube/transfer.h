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

// One HTTP exchange after another with the API server; the only user of libcurl.
namespace neuron::kube {

struct HttpRequest {
  const char* verb = "GET";
  std::string target;                       // path and query, encoded: "/api/v1/nodes/n1?x=y"
  std::string accept = "application/json";  // media type
  std::string content_type{};               // of `body`
  std::string_view body{};                  // must live until the exchange is over; "" = none
  // libcurl repeats a request by itself when a kept connection turns out to be lost before a byte of the answer, and
  // the server may have done it by then. True: on a new connection, so that this cannot be.
  bool only_once = false;
};

struct HttpAnswer {
  int status = 0;
  std::string body;
  std::chrono::seconds retry_after{0};  // header Retry-After; 0 = none
};

// How long and how much one exchange may take.
struct HttpLimits {
  std::chrono::milliseconds deadline{5000};       // name, connection, TLS, answer; of a stream: until it begins
  std::size_t max_bytes = std::size_t{1} << 20U;  // of the answer's body; of a stream's, when it is an error
  std::chrono::milliseconds idle{std::chrono::minutes(2)};  // of a stream: without a byte
  std::size_t max_line = std::size_t{4} << 20U;             // of a stream
};

// A connection that is kept between exchanges, as long as the server keeps it and its certificates are trusted by the
// same authority; one exchange at a time. The server's certificate is always verified against `access.ca_pem` alone,
// redirects are not followed, and no proxy is used: the token goes to that server or nowhere.
//
// Errors, each with the URL and what to do: unavailable (nobody listens, no such name, the connection broke, stopped),
// deadline_exceeded, failed_precondition (the certificate is not signed by that CA or names another server),
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

  // As kube::Api::stream. What ends it without an error (on_line, stop, the server, idleness) gives the status alone,
  // 200 where it was stopped before it had begun.
  [[nodiscard]] Result<HttpAnswer> stream(const ClusterAccess& access, const HttpRequest& request,
                                          const HttpLimits& limits, const OnLine& on_line, const std::stop_token& stop);

 private:
  struct Handles;
  std::unique_ptr<Handles> handles_;
};

}  // namespace neuron::kube
