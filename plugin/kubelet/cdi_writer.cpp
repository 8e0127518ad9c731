#include "plugin/kubelet/cdi_writer.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "agent/base/mutex.h"

namespace neuron::plugin {

struct CdiWriter::Answer {
  Mutex mutex;
  std::optional<Written> written GUARDED_BY(mutex);
};

CdiWriter::CdiWriter(Settings settings, std::function<void(Job)> run, const Clock& clock)
    : settings_(std::move(settings)), run_(std::move(run)), clock_(clock), answer_(std::make_shared<Answer>()) {}

bool CdiWriter::begin(Write write, Job ended) {
  if (is_running()) return false;
  begun_at_ = clock_.now();
  was_late_ = false;
  run_([answer = answer_, write = std::move(write), ended = std::move(ended)] {
    Written written = write();
    {
      const MutexLock lock(answer->mutex);
      answer->written = std::move(written);
    }
    ended();
  });
  return true;
}

std::optional<CdiWriter::Written> CdiWriter::take() {
  std::optional<Written> written;
  {
    const MutexLock lock(answer_->mutex);
    written = std::exchange(answer_->written, std::nullopt);
  }
  if (!written) return std::nullopt;
  begun_at_.reset();
  log_state(written->error);
  return written;
}

bool CdiWriter::is_late() {
  if (!begun_at_ || clock_.now() < *begun_at_ + kPatience) return false;
  if (!std::exchange(was_late_, true)) {
    log_state(fmt::format("{} did not answer within {} s", settings_.directory, kPatience.count() / 1000));
  }
  return true;
}

std::optional<SteadyTime> CdiWriter::late_at() const {
  if (!begun_at_ || was_late_) return std::nullopt;
  return *begun_at_ + kPatience;
}

void CdiWriter::log_state(const std::string& error) {
  if (error == error_) return;
  if (!error.empty()) spdlog::error("{} not written, containers may fail to start: {}", settings_.what, error);
  if (error.empty()) spdlog::info("{} written again", settings_.what);
  error_ = error;
}

}  // namespace neuron::plugin
