#include "agent/kube/api_client.h"

#include <algorithm>
#include <utility>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "agent/kube/api.h"
#include "agent/kube/limits.h"

namespace neuron::kube {
namespace {

using std::chrono::milliseconds;

const char* content_type_of(Method method) {
  if (method == Method::get) return "";
  if (method == Method::merge_patch) return "application/merge-patch+json";
  if (method == Method::apply) return "application/apply-patch+yaml";  // JSON is YAML
  return "application/json";
}

// Names in paths come from foreign objects: without encoding they could address another resource.
bool is_target(const ApiCall& call) {
  const auto is_visible = [](unsigned char letter) { return letter > 0x20 && letter < 0x7f; };
  const auto all = [&](const std::string& text, std::string_view none_of) {
    return std::ranges::all_of(text, is_visible) && text.find_first_of(none_of) == std::string::npos;
  };
  const std::string path = call.path + "/";
  return call.path.starts_with('/') && all(call.path, "?#\\") && all(call.query, "#\\") &&
         path.find("/../") == std::string::npos && path.find("/./") == std::string::npos &&
         path.find("//") == std::string::npos;
}

HttpRequest request_of(const ApiCall& call) {
  HttpRequest request;
  request.verb = verb_of(call.method);
  request.target = call.path + (call.query.empty() ? "" : "?" + call.query);
  if (!call.accept.empty()) request.accept = call.accept;
  request.content_type = content_type_of(call.method);
  if (call.method != Method::get) request.body = call.body;
  request.only_once = call.method == Method::create;  // with generateName a repetition would make two
  return request;
}

Result<std::string> get_once(const ClusterAccess& access, const std::string& path, const std::string& accept,
                             const HttpLimits& limits) {
  HttpRequest request;
  request.target = path;
  request.accept = accept;
  Connection connection;
  TRY_ASSIGN(HttpAnswer answer, connection.call(access, request, limits, {}));
  if (answer.status == 200) return std::move(answer.body);
  return fail(status_error({answer.status, std::move(answer.body)}, access.url + path));
}

// "" where the node does not have the label.
std::string text_of(const Result<std::optional<std::string>>& label) {
  constexpr std::size_t kLongest = 63;  // of a label's value (docs: Kubernetes, "Labels and Selectors")
  return label && *label && (*label)->size() <= kLongest ? **label : "";
}

}  // namespace

ApiClient::ApiClient(ApiPlaces places, const ClientLimits& limits)
    : places_(std::move(places)), limits_(limits), bucket_(limits.calls_per_second, limits.burst) {}

Connection ApiClient::borrow() {
  {
    const MutexLock lock(mutex_);
    if (!idle_.empty()) {
      Connection connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  return {};
}

void ApiClient::give_back(Connection connection) {
  const MutexLock lock(mutex_);
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(connection));
}

// A random part is added, so that the agents of a cluster do not call in step.
Result<void> ApiClient::wait_in_row(const std::stop_token& stop) {
  std::optional<TokenBucket::Duration> wait;
  {
    const MutexLock lock(mutex_);
    wait = bucket_.take(std::chrono::steady_clock::now(), limits_.http.deadline);
    if (wait) *wait += *wait * std::uniform_int_distribution<int>(0, 100)(chance_) / 400;
  }
  if (!wait) {
    return fail(ErrorCode::unavailable, places_.url + " not called: it requested a pause, or the limit of " +
                                            std::to_string(static_cast<int>(limits_.calls_per_second)) +
                                            " calls per second is reached");
  }
  if (*wait > TokenBucket::Duration(0)) wait_for(std::chrono::ceil<milliseconds>(*wait), stop);
  return {};
}

Result<void> ApiClient::enter(const std::stop_token& stop) {
  const SteadyTime until = std::chrono::steady_clock::now() + limits_.http.deadline;
  const std::stop_callback wake(stop, [this] {
    const MutexLock lock(mutex_);
    left_.notify_all();
  });
  const MutexLock lock(mutex_);
  while (busy_ >= limits_.at_once && !stop.stop_requested()) {
    if (left_.wait_until(mutex_, until) == std::cv_status::timeout && busy_ >= limits_.at_once) {
      return fail(ErrorCode::unavailable,
                  places_.url + " not called: " + std::to_string(limits_.at_once) + " calls are still pending");
    }
  }
  ++busy_;
  return {};
}

void ApiClient::leave() {
  const MutexLock lock(mutex_);
  --busy_;
  left_.notify_one();
}

Result<HttpAnswer> ApiClient::attempt(const HttpRequest& request, const OnLine* on_line, const std::stop_token& stop) {
  TRY_ASSIGN(const ClusterAccess access, read_access(places_));
  Connection connection = borrow();
  auto answer = on_line == nullptr ? connection.call(access, request, limits_.http, stop)
                                   : connection.stream(access, request, limits_.http, *on_line, stop);
  give_back(std::move(connection));
  return answer;
}

Result<ApiReply> ApiClient::exchange(const ApiCall& call, const OnLine* on_line, const std::stop_token& stop) {
  if (!is_target(call)) {
    return fail(ErrorCode::invalid_argument, "not an API server path: " + printable(call.path + "?" + call.query));
  }
  TRY(wait_in_row(stop));
  const HttpRequest request = request_of(call);
  TRY_ASSIGN(HttpAnswer answer, attempt(request, on_line, stop));
  if (answer.status == 401) {  // the token was replaced between the two
    TRY_ASSIGN(answer, attempt(request, on_line, stop));
  }
  if ((answer.status == 429 || answer.status == 503) && answer.retry_after.count() > 0) {
    const MutexLock lock(mutex_);
    bucket_.pause(std::chrono::steady_clock::now() + std::min(answer.retry_after, limits_.longest_pause));
  }
  return ApiReply{answer.status, std::move(answer.body)};
}

Result<ApiReply> ApiClient::call(const ApiCall& call) {
  TRY(enter(closing_.get_token()));
  auto reply = exchange(call, nullptr, closing_.get_token());
  leave();
  return reply;
}

Result<ApiReply> ApiClient::stream(const ApiCall& call, const OnLine& on_line, const std::stop_token& stop) {
  if (call.method != Method::get) return fail(ErrorCode::invalid_argument, "only a GET can be streamed");
  std::stop_source either;
  const std::stop_callback stopped(stop, [&] { either.request_stop(); });
  const std::stop_callback closed(closing_.get_token(), [&] { either.request_stop(); });
  return exchange(call, &on_line, either.get_token());
}

void ObservedApi::count(const Result<ApiReply>& reply) {
  constexpr int kFirstError = 400;
  ++(reply && reply->status < kFirstError ? ok_ : errors_);
}

Result<ApiReply> ObservedApi::call(const ApiCall& call) {
  constexpr int kOk = 200;
  auto reply = api_.call(call);
  count(reply);
  if (!reply || reply->status != kOk || call.method != Method::get || call.path != path_) return reply;
  const auto zone = label_in(reply->body, "topology.kubernetes.io/zone", path_);
  const auto region = label_in(reply->body, "topology.kubernetes.io/region", path_);
  if (!zone && !region) return reply;  // no object
  const MutexLock lock(mutex_);
  place_ = {text_of(zone), text_of(region)};
  return reply;
}

Result<ApiReply> ObservedApi::stream(const ApiCall& call, const OnLine& on_line, const std::stop_token& stop) {
  auto reply = api_.stream(call, on_line, stop);
  count(reply);
  return reply;
}

std::map<std::string, std::uint64_t> ObservedApi::counts() const {
  return {{"ok", ok_.load()}, {"error", errors_.load()}};
}

NodePlace ObservedApi::place() const {
  const MutexLock lock(mutex_);
  return place_;
}

Result<std::optional<std::string>> node_label(const ClusterAccess& access, const std::string& node,
                                              const std::string& label, const HttpLimits& limits) {
  TRY(check_node_name(node));
  TRY(check_label_key(label));
  const std::string path = "/api/v1/nodes/" + node;
  TRY_ASSIGN(const std::string body, get_once(access, path, kMetadataOnly, limits));
  return label_in(body, label, access.url + path);
}

}  // namespace neuron::kube
