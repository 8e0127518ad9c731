#include "tools/neuron-agent/probes.h"

#include <fmt/format.h>
#include <malloc.h>
#include <spdlog/spdlog.h>

namespace neuron::agent {

Probes::Probes(std::optional<ListenAddress> address, const Clock& clock, ProbeExtras extras)
    : address_(std::move(address)),
      clock_(clock),
      extras_(std::move(extras)),
      turned_at_(clock.now()),
      readiness_(std::make_shared<const plugin::Readiness>(plugin::assess_readiness(state_))) {}

void Probes::turn(const plugin::ServingState& state) {
  const bool is_new = state != state_;
  if (is_new) state_ = state;
  turn(is_new ? std::make_shared<const plugin::Readiness>(plugin::assess_readiness(state)) : nullptr);
}

void Probes::turn(const plugin::Readiness& readiness) {
  turn(std::make_shared<const plugin::Readiness>(readiness));
}

void Probes::turn(std::shared_ptr<const plugin::Readiness> changed) {
  const SteadyTime now = clock_.now();
  {
    const MutexLock lock(mutex_);
    turned_at_ = now;
    if (changed) readiness_.swap(changed);
  }
  if (address_ && !server_ && now >= retry_at_) serve(now);
  if (extras_.page != nullptr && extras_.page->take_quiet()) ::malloc_trim(0);
}

std::optional<metrics::TlsFiles> Probes::tls() const {
  std::optional<metrics::TlsFiles> files = extras_.tls;
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

void Probes::serve(SteadyTime now) {
  auto started = metrics::HttpServer::start(
      *address_, [this](const metrics::HttpRequest& request) { return answer(request); }, tls());
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
               extras_.tls ? " over TLS" : "");
}

std::optional<std::uint16_t> Probes::port() const {
  return server_ ? std::optional(server_->port()) : std::nullopt;
}

metrics::HttpAnswer Probes::answer(const metrics::HttpRequest& request) const {
  const std::string_view path = request.path;
  if (path == "/metrics" && extras_.page != nullptr) return extras_.page->answer(request.accept);
  SteadyTime turned_at;
  std::shared_ptr<const plugin::Readiness> readiness;
  {
    const MutexLock lock(mutex_);
    turned_at = turned_at_;
    readiness = readiness_;
  }
  constexpr int kOk = 200;
  constexpr int kNotFound = 404;
  constexpr int kUnavailable = 503;
  if (path == "/readyz") return {readiness->ready ? kOk : kUnavailable, readiness->text};
  if (path != "/healthz") return {kNotFound, "paths are /healthz, /readyz and /metrics\n"};
  const auto age = clock_.now() - turned_at;
  if (age <= kLoopDue) return {kOk, "ok\n"};
  return {kUnavailable, fmt::format("the main loop has not run for {} s\n",
                                    std::chrono::duration_cast<std::chrono::seconds>(age).count())};
}

}  // namespace neuron::agent
