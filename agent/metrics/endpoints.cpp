#include "agent/metrics/endpoints.h"

#include <fmt/format.h>
#include <malloc.h>
#include <spdlog/spdlog.h>

#include <cstddef>
#include <utility>

namespace neuron::metrics {
namespace {

constexpr int kOk = 200;
constexpr int kNotFound = 404;
constexpr int kUnavailable = 503;

std::optional<TlsFiles> logged(std::optional<TlsFiles> files) {
  if (!files) return files;
  files->on_change = [](const std::string& problem) {
    if (problem.empty()) {
      spdlog::info("metrics certificate reloaded");
    } else {
      spdlog::warn("metrics certificate not reloaded, keeping the previous one: {}", problem);
    }
  };
  return files;
}

}  // namespace

KeptText::Text KeptText::get(std::uint64_t scan, const std::function<Text()>& make) {
  const SteadyTime now = clock_.now();
  const MutexLock lock(mutex_);
  if (text_ && text_scan_ == scan && now - text_at_ < kGoodFor) return text_;
  text_ = make();
  text_at_ = now;
  text_scan_ = scan;
  const MutexLock quiet_lock(quiet_mutex_);
  made_at_ = clock_.now();
  return text_;
}

bool KeptText::take_quiet() {
  const SteadyTime now = clock_.now();
  const MutexLock lock(quiet_mutex_);
  if (!made_at_ || now - *made_at_ < kGoodFor) return false;
  made_at_.reset();
  return true;
}

HttpAnswer MetricsPage::answer(std::string_view accept) {
  const TextFormat format = format_for(accept);
  HttpAnswer answer;
  answer.content_type = content_type(format);
  answer.shared = texts_[static_cast<std::size_t>(format)].get(
      ports_.scan(), [&] { return std::make_shared<const std::string>(render_metrics(ports_.gather(), format)); });
  return answer;
}

bool MetricsPage::take_quiet() {
  bool is_quiet = false;
  for (KeptText& text : texts_) is_quiet = text.take_quiet() || is_quiet;
  return is_quiet;
}

HttpAnswer NodePage::answer() {
  HttpAnswer answer;
  answer.content_type = "application/json";
  answer.shared = text_.get(ports_.scan(), [this]() -> KeptText::Text {
    auto text = ports_.make();
    return text ? std::make_shared<const std::string>(*std::move(text)) : nullptr;
  });
  if (answer.shared == nullptr) return {kUnavailable, "the node has not been scanned yet\n"};
  return answer;
}

Probes::Probes(std::optional<ListenAddress> address, const Clock& clock, Pages pages, std::optional<TlsFiles> tls)
    : address_(std::move(address)), clock_(clock), pages_(pages), tls_(std::move(tls)), turned_at_(clock.now()) {}

void Probes::turn(const Readiness& readiness) {
  const SteadyTime now = clock_.now();
  {
    const MutexLock lock(mutex_);
    turned_at_ = now;
    readiness_ = readiness;
  }
  if (address_ && !server_ && now >= retry_at_) serve(now);
  const bool metrics_quiet = pages_.metrics != nullptr && pages_.metrics->take_quiet();
  const bool node_quiet = pages_.node != nullptr && pages_.node->take_quiet();
  if (metrics_quiet || node_quiet) ::malloc_trim(0);
}

void Probes::serve(SteadyTime now) {
  auto started = HttpServer::start(
      *address_, [this](const HttpRequest& request) { return answer(request); }, logged(tls_));
  if (!started) {
    retry_at_ = now + kRetry;
    if (started.error().message != last_error_) {
      spdlog::warn("probe server not started, retrying (devices are served anyway): {}", started.error().message);
    }
    last_error_ = started.error().message;
    return;
  }
  server_ = *std::move(started);
  last_error_.clear();
  spdlog::info("probe server listening address={}{}", to_string(ListenAddress{address_->host, server_->port()}),
               tls_ ? " over TLS" : "");
}

std::optional<std::uint16_t> Probes::port() const {
  return server_ ? std::optional(server_->port()) : std::nullopt;
}

HttpAnswer Probes::answer(const HttpRequest& request) const {
  const std::string_view path = request.path;
  if (path == "/metrics" && pages_.metrics != nullptr) return pages_.metrics->answer(request.accept);
  if (path == "/node") {
    return pages_.node != nullptr ? pages_.node->answer() : HttpAnswer{kNotFound, "off: --node-document\n"};
  }
  SteadyTime turned_at;
  Readiness readiness;
  {
    const MutexLock lock(mutex_);
    turned_at = turned_at_;
    readiness = readiness_;
  }
  if (path == "/readyz") return {readiness.ready ? kOk : kUnavailable, readiness.text};
  if (path != "/healthz") return {kNotFound, "paths are /healthz, /readyz, /metrics and /node\n"};
  const auto age = clock_.now() - turned_at;
  if (age <= kLoopDue) return {kOk, "ok\n"};
  return {kUnavailable, fmt::format("the main loop has not run for {} s\n",
                                    std::chrono::duration_cast<std::chrono::seconds>(age).count())};
}

}  // namespace neuron::metrics
