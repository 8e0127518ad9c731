#include "agent/kube/transfer.h"

#include <curl/curl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <optional>

#include "agent/base/parse.h"
#include "neuron_version.h"

namespace neuron::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kMaxHeaders = std::size_t{64} << 10U;  // libcurl bounds each line, not their sum

struct FreeEasy {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct FreeMulti {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, FreeEasy>;
using Multi = std::unique_ptr<CURLM, FreeMulti>;
using Headers = std::unique_ptr<curl_slist, FreeList>;

// One exchange as libcurl's callbacks see it.
struct Incoming {
  CURL* easy = nullptr;
  const HttpLimits* limits = nullptr;
  const Connection::OnLine* on_line = nullptr;  // null: no stream
  LineSplitter lines;
  LineSplitter::State line_state = LineSplitter::State::going;
  std::string body{};
  std::size_t header_bytes = 0;
  bool is_too_long = false;
  steady_clock::time_point last_byte{};

  [[nodiscard]] int status() const {
    long code = 0;
    return curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code) == CURLE_OK ? static_cast<int>(code) : 0;
  }
  [[nodiscard]] bool is_streaming() const { return on_line != nullptr && status() >= 200 && status() < 300; }
};

// Another return value than the number of bytes ends the transfer.
std::size_t take_body(char* data, std::size_t /*always 1*/, std::size_t count, void* user) {
  auto& incoming = *static_cast<Incoming*>(user);
  incoming.last_byte = steady_clock::now();
  if (incoming.is_streaming()) {
    incoming.line_state = incoming.lines.take({data, count}, *incoming.on_line);
    return incoming.line_state == LineSplitter::State::going ? count : 0;
  }
  incoming.is_too_long = incoming.is_too_long || count > incoming.limits->max_bytes - incoming.body.size();
  if (incoming.is_too_long) return 0;
  incoming.body.append(data, count);
  return count;
}

std::size_t take_header(char* /*data*/, std::size_t /*always 1*/, std::size_t count, void* user) {
  auto& incoming = *static_cast<Incoming*>(user);
  incoming.last_byte = steady_clock::now();
  incoming.header_bytes += count;
  incoming.is_too_long = incoming.is_too_long || incoming.header_bytes > kMaxHeaders;
  return incoming.is_too_long ? 0 : count;
}

// As libcurl does, but closed on exec.
curl_socket_t open_socket(void* /*user*/, curlsocktype /*purpose*/, curl_sockaddr* address) {
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

bool is_library_ready() {
  static const bool ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return ready;
}

bool add(Headers& headers, const std::string& line) {
  curl_slist* longer = curl_slist_append(headers.get(), line.c_str());
  if (longer == nullptr) return false;
  std::ignore = headers.release();
  headers.reset(longer);
  return true;
}

// True when libcurl accepted the option.
template <typename... Values>
bool set(CURL* handle, CURLoption option, Values... value) {
  return curl_easy_setopt(handle, option, value...) == CURLE_OK;
}

bool trust_only(CURL* handle, const std::string& ca_pem) {
  curl_blob ca{};
  ca.data = const_cast<char*>(ca_pem.data());  // copied, not changed
  ca.len = ca_pem.size();
  ca.flags = CURL_BLOB_COPY;
  // Without the two nulls libcurl would also trust the system's authorities.
  return set(handle, CURLOPT_CAPATH, static_cast<char*>(nullptr)) &&
         set(handle, CURLOPT_CAINFO, static_cast<char*>(nullptr)) && set(handle, CURLOPT_CAINFO_BLOB, &ca) &&
         set(handle, CURLOPT_SSL_VERIFYPEER, 1L) && set(handle, CURLOPT_SSL_VERIFYHOST, 2L) &&
         set(handle, CURLOPT_SSLVERSION, long{CURL_SSLVERSION_TLSv1_2});
}

// A connection to the server itself, or to the socket of a proxy.
bool set_peer(CURL* handle, const ClusterAccess& access) {
  if (access.unix_socket.empty()) {
    return set(handle, CURLOPT_PROTOCOLS_STR, "https") && trust_only(handle, access.ca_pem);
  }
  return set(handle, CURLOPT_PROTOCOLS_STR, "http") &&
         set(handle, CURLOPT_UNIX_SOCKET_PATH, access.unix_socket.c_str());
}

bool set_headers(Headers& headers, const ClusterAccess& access, const HttpRequest& request) {
  return add(headers, "Accept: " + request.accept) &&
         (!access.unix_socket.empty() || add(headers, "Authorization: Bearer " + access.token)) &&
         add(headers, "Expect:") &&  // no 100-continue before a long body
         (request.body.empty() || add(headers, "Content-Type: " + request.content_type));
}

bool set_request(CURL* handle, const std::string& url, const HttpRequest& request, curl_slist* headers) {
  const bool is_get = std::string_view(request.verb) == "GET";
  const bool is_body_set =
      request.body.empty() ? set(handle, CURLOPT_HTTPGET, 1L)
                           : set(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size())) &&
                                 set(handle, CURLOPT_POSTFIELDS, request.body.data());
  return is_body_set && (is_get || set(handle, CURLOPT_CUSTOMREQUEST, request.verb)) &&
         set(handle, CURLOPT_URL, url.c_str()) && set(handle, CURLOPT_PATH_AS_IS, 1L) &&
         set(handle, CURLOPT_FRESH_CONNECT, request.only_once ? 1L : 0L) && set(handle, CURLOPT_HTTPHEADER, headers) &&
         set(handle, CURLOPT_FOLLOWLOCATION, 0L) && set(handle, CURLOPT_PROXY, "") &&  // nor one of the environment
         set(handle, CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1}) &&
         set(handle, CURLOPT_USERAGENT, (std::string("neuron-agent/") + kVersion).c_str());
}

bool set_limits(CURL* handle, Incoming& incoming) {
  const auto deadline = static_cast<long>(incoming.limits->deadline.count());
  const bool is_stream = incoming.on_line != nullptr;
  // No signals: this is a library. Quick exit: do not wait for a hanging resolver after the deadline.
  return set(handle, is_stream ? CURLOPT_CONNECTTIMEOUT_MS : CURLOPT_TIMEOUT_MS, deadline) &&
         set(handle, CURLOPT_NOSIGNAL, 1L) && set(handle, CURLOPT_QUICK_EXIT, 1L) &&
         set(handle, CURLOPT_TCP_KEEPALIVE, 1L) && set(handle, CURLOPT_OPENSOCKETFUNCTION, open_socket) &&
         set(handle, CURLOPT_WRITEFUNCTION, take_body) && set(handle, CURLOPT_WRITEDATA, &incoming) &&
         set(handle, CURLOPT_HEADERFUNCTION, take_header) && set(handle, CURLOPT_HEADERDATA, &incoming);
}

ErrorCode code_of(CURLcode result) {
  switch (result) {
    case CURLE_OPERATION_TIMEDOUT:
      return ErrorCode::deadline_exceeded;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return ErrorCode::failed_precondition;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_HTTP2:
      return ErrorCode::data_corrupt;
    case CURLE_OUT_OF_MEMORY:
    case CURLE_URL_MALFORMAT:
      return ErrorCode::internal;
    default:
      return ErrorCode::unavailable;
  }
}

Error late(const std::string& url, milliseconds deadline) {
  return make_error(ErrorCode::deadline_exceeded,
                    url + " did not answer within " + std::to_string(deadline.count()) + " ms");
}

Error transfer_error(CURLcode result, const std::string& url, const char* detail, const HttpLimits& limits) {
  const std::string why = printable(*detail != '\0' ? detail : curl_easy_strerror(result), 200);
  switch (code_of(result)) {
    case ErrorCode::deadline_exceeded:
      return late(url, limits.deadline);
    case ErrorCode::failed_precondition:
      return make_error(ErrorCode::failed_precondition,
                        url + " is not trusted; check the CA file of the service account volume: " + why);
    default:
      return make_error(code_of(result), url + ": " + why);
  }
}

enum class End { transfer, stopped, idle, late, internal };

struct Outcome {
  End end = End::transfer;
  CURLcode result = CURLE_OK;  // of End::transfer
};

}  // namespace

struct Connection::Handles {
  Multi multi{is_library_ready() ? curl_multi_init() : nullptr};
  Easy easy{multi ? curl_easy_init() : nullptr};  // destroyed before `multi`, as libcurl requires

  [[nodiscard]] Result<HttpAnswer> exchange(const ClusterAccess& access, const HttpRequest& request,
                                            const HttpLimits& limits, const OnLine* on_line,
                                            const std::stop_token& stop);
  [[nodiscard]] Outcome perform(const Incoming& incoming, const std::stop_token& stop) const;
  [[nodiscard]] Outcome run(const Incoming& incoming, const std::stop_token& stop) const;
};

Outcome Connection::Handles::perform(const Incoming& incoming, const std::stop_token& stop) const {
  if (curl_multi_setopt(multi.get(), CURLMOPT_MAXCONNECTS, 1L) != CURLM_OK) return {End::internal};
  if (curl_multi_add_handle(multi.get(), easy.get()) != CURLM_OK) return {End::internal};
  const Outcome outcome = run(incoming, stop);
  curl_multi_remove_handle(multi.get(), easy.get());  // closes an unfinished transfer
  return outcome;
}

Outcome Connection::Handles::run(const Incoming& incoming, const std::stop_token& stop) const {
  const std::stop_callback wake(stop, [this] { curl_multi_wakeup(multi.get()); });
  const auto begin = steady_clock::now();
  for (;;) {
    int running = 0;
    if (curl_multi_perform(multi.get(), &running) != CURLM_OK) return {End::internal};
    if (running == 0) break;
    if (stop.stop_requested()) return {End::stopped};
    milliseconds left{1000};
    if (incoming.on_line != nullptr) {
      const bool has_begun = incoming.header_bytes > 0;
      const auto end = has_begun ? incoming.last_byte + incoming.limits->idle : begin + incoming.limits->deadline;
      const auto now = steady_clock::now();
      if (now >= end) return {has_begun ? End::idle : End::late};
      left = std::min(left, std::chrono::ceil<milliseconds>(end - now));
    }
    if (curl_multi_poll(multi.get(), nullptr, 0, static_cast<int>(left.count()), nullptr) != CURLM_OK) {
      return {End::internal};
    }
  }
  int others = 0;
  const CURLMsg* message = curl_multi_info_read(multi.get(), &others);
  if (message == nullptr || message->msg != CURLMSG_DONE) return {End::internal};
  return {End::transfer, message->data.result};
}

Result<HttpAnswer> Connection::Handles::exchange(const ClusterAccess& access, const HttpRequest& request,
                                                 const HttpLimits& limits, const OnLine* on_line,
                                                 const std::stop_token& stop) {
  // Messages omit the query, so that the same failure has the same text.
  const std::string url = access.url + request.target.substr(0, request.target.find('?'));
  Headers headers;
  std::array<char, CURL_ERROR_SIZE> detail{};
  Incoming incoming{easy.get(), &limits, on_line, LineSplitter(limits.max_line)};
  if (easy) curl_easy_reset(easy.get());  // the connection stays
  const bool is_set = easy && set_headers(headers, access, request) &&
                      set(easy.get(), CURLOPT_ERRORBUFFER, detail.data()) && set_peer(easy.get(), access) &&
                      set_request(easy.get(), access.url + request.target, request, headers.get()) &&
                      set_limits(easy.get(), incoming);
  if (!is_set) return fail(ErrorCode::internal, url + ": libcurl cannot be set up");
  const Outcome outcome = perform(incoming, stop);
  const int status = incoming.status();
  curl_off_t retry_after = 0;
  if (curl_easy_getinfo(easy.get(), CURLINFO_RETRY_AFTER, &retry_after) != CURLE_OK) retry_after = 0;
  curl_easy_reset(easy.get());  // drop the pointers to this function's variables
  if (outcome.end == End::stopped) {
    if (on_line != nullptr) return HttpAnswer{status != 0 ? status : 200, ""};
    return fail(ErrorCode::unavailable, url + " abandoned: the program is exiting");
  }
  if (incoming.is_too_long) {
    return fail(ErrorCode::data_corrupt,
                url + " answered with more than " + std::to_string(limits.max_bytes) + " bytes, or endless headers");
  }
  if (incoming.line_state == LineSplitter::State::too_long) {
    return fail(ErrorCode::data_corrupt,
                url + " sent a line of more than " + std::to_string(limits.max_line) + " bytes");
  }
  if (outcome.end == End::late) return fail(late(url, limits.deadline));
  if (outcome.end == End::internal) return fail(ErrorCode::internal, url + ": libcurl fails");
  const bool has_ended = outcome.end == End::idle || incoming.line_state == LineSplitter::State::ended;
  if (!has_ended && outcome.result != CURLE_OK) {
    return fail(transfer_error(outcome.result, url, detail.data(), limits));
  }
  return HttpAnswer{status, std::move(incoming.body), std::chrono::seconds(retry_after)};
}

Connection::Connection() : handles_(std::make_unique<Handles>()) {}
Connection::~Connection() = default;
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;

Result<HttpAnswer> Connection::call(const ClusterAccess& access, const HttpRequest& request, const HttpLimits& limits,
                                    const std::stop_token& stop) {
  return handles_->exchange(access, request, limits, nullptr, stop);
}

Result<HttpAnswer> Connection::stream(const ClusterAccess& access, const HttpRequest& request, const HttpLimits& limits,
                                      const OnLine& on_line, const std::stop_token& stop) {
  return handles_->exchange(access, request, limits, &on_line, stop);
}

}  // namespace neuron::kube
