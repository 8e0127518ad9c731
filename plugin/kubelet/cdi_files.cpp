#include "plugin/kubelet/cdi_files.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "agent/base/fd.h"
#include "agent/base/mutex.h"

namespace neuron::plugin {
namespace {

std::string path_of(const std::string& directory, std::string kind) {
  std::replace(kind.begin(), kind.end(), '/', '-');
  return directory + "/" + kind + ".json";
}

}  // namespace

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

CdiTexts cdi_texts(const grant::NodeUnits& node, const grant::GrantOptions& options, const std::string& directory) {
  return {
      {path_of(directory, grant::kCdiNeuronKind), grant::cdi_spec(node, model::Resource::neuron, options)},
      {path_of(directory, grant::kCdiEfaKind), grant::cdi_spec(node, model::Resource::efa, options)},
  };
}

CdiSpecs::CdiSpecs(Settings settings, Ports ports)
    : settings_(std::move(settings)),
      ports_(std::move(ports)),
      writer_({"CDI specs", settings_.directory}, ports_.run, ports_.clock) {}

void CdiSpecs::set_node(grant::NodeUnitsPtr node) {
  CdiTexts texts = cdi_texts(*node, settings_.grant, settings_.directory);
  const bool is_first = !wanted_;
  if (is_first || *wanted_ != texts) wanted_ = std::make_shared<const CdiTexts>(std::move(texts));
  waiting_ = std::move(node);
  if (wanted_ == written_ || writer_.is_late()) show();
  if (wanted_ != written_) begin();
  if (is_first) check();
}

void CdiSpecs::begin() {
  const auto post_to_self = [weak = weak_from_this(), post = ports_.post](SteadyTime when, auto work) {
    post(when, [weak, work] {
      if (const auto self = weak.lock()) work(*self);
    });
  };
  const bool is_begun =
      writer_.begin([texts = wanted_, directory = settings_.directory] { return write(*texts, directory); },
                    [post_to_self, texts = wanted_, now = ports_.clock.now()] {
                      post_to_self(now, [texts](CdiSpecs& self) { self.ended(texts); });
                    });
  if (!is_begun) return;
  post_to_self(*writer_.late_at(), [](CdiSpecs& self) {
    if (self.writer_.is_late()) self.show();
  });
}

CdiWriter::Written CdiSpecs::write(const CdiTexts& texts, const std::string& directory) {
  CdiWriter::Written written;
  for (const auto& [path, text] : texts) {
    const auto kept = keep_file(path, text);
    if (kept) written.is_changed |= *kept;
    if (!kept && written.error.empty()) written.error = kept.error().message;
  }
  written.is_dead = !written.error.empty() && is_removed_directory(directory);
  return written;
}

void CdiSpecs::ended(const TextsPtr& texts) {
  const auto written = writer_.take();
  if (!written) return;
  const bool is_restored = written->is_changed && texts == written_;
  written_ = written->error.empty() ? texts : nullptr;
  if (is_restored && written_) spdlog::warn("CDI specs restored, files had been removed or changed");
  if (written->is_dead) ports_.directory_is_dead();
  if (texts == wanted_) {
    show();
  } else {
    begin();
  }
}

void CdiSpecs::check() {
  begin();
  ports_.post(ports_.clock.now() + settings_.every, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->check();
  });
}

void CdiSpecs::show() {
  if (auto node = std::exchange(waiting_, nullptr)) ports_.show(std::move(node));
}

}  // namespace neuron::plugin
