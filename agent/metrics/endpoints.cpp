#include "agent/metrics/endpoints.h"

#include <fmt/format.h>
#include <malloc.h>
#include <spdlog/spdlog.h>

#include <cstddef>
#include <utility>

namespace neuron::metrics {
namespace {

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

HttpAnswer MetricsPage::answer(std::string_view accept) {
  const TextFormat format = format_for(accept);
  const SteadyTime now = clock_.now();
  const std::uint64_t scan = ports_.scan();
  HttpAnswer answer;
  answer.content_type = content_type(format);
  const MutexLock lock(mutex_);
  Text& kept = texts_[static_cast<std::size_t>(format)];
  if (!kept.text || kept.scan != scan || now - kept.made_at >= kGoodFor) {
    kept = {std::make_shared<const std::string>(render_metrics(ports_.gather(), format)), now, scan};
    const MutexLock quiet_lock(quiet_mutex_);
    made_at_ = clock_.now();
  }
  answer.shared = kept.text;
  return answer;
}

bool MetricsPage::take_quiet() {
  const SteadyTime now = clock_.now();
  const MutexLock lock(quiet_mutex_);
  if (!made_at_ || now - *made_at_ < kGoodFor) return false;
  made_at_.reset();
  return true;
}

Probes::Probes(std::optional<ListenAddress> address, const Clock& clock, MetricsPage* page, std::optional<TlsFiles> tls)
    : address_(std::move(address)), clock_(clock), page_(page), tls_(std::move(tls)), turned_at_(clock.now()) {}

void Probes::turn(const Readiness& readiness) {
  const SteadyTime now = clock_.now();
  {
    const MutexLock lock(mutex_);
    turned_at_ = now;
    readiness_ = readiness;
  }
  if (address_ && !server_ && now >= retry_at_) serve(now);
  if (page_ != nullptr && page_->take_quiet()) ::malloc_trim(0);
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
  if (path == "/metrics" && page_ != nullptr) return page_->answer(request.accept);
  SteadyTime turned_at;
  Readiness readiness;
  {
    const MutexLock lock(mutex_);
    turned_at = turned_at_;
    readiness = readiness_;
  }
  constexpr int kOk = 200;
  constexpr int kNotFound = 404;
  constexpr int kUnavailable = 503;
  if (path == "/readyz") return {readiness.ready ? kOk : kUnavailable, readiness.text};
  if (path != "/healthz") return {kNotFound, "paths are /healthz, /readyz and /metrics\n"};
  const auto age = clock_.now() - turned_at;
  if (age <= kLoopDue) return {kOk, "ok\n"};
  return {kUnavailable, fmt::format("the main loop has not run for {} s\n",
                                    std::chrono::duration_cast<std::chrono::seconds>(age).count())};
}

}  // namespace neuron::metrics
