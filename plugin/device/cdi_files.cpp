#include "plugin/device/cdi_files.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "agent/base/fd.h"
#include "agent/grant/cdi.h"

namespace neuron::plugin {
namespace {

std::string path_of(const std::string& directory, std::string kind) {
  std::replace(kind.begin(), kind.end(), '/', '-');
  return directory + "/" + kind + ".json";
}

}  // namespace

CdiTexts cdi_texts(const grant::NodeUnits& node, const grant::GrantOptions& options, const std::string& directory) {
  return {
      {path_of(directory, grant::kCdiNeuronKind), grant::cdi_spec(node, model::Resource::neuron, options)},
      {path_of(directory, grant::kCdiEfaKind), grant::cdi_spec(node, model::Resource::efa, options)},
  };
}

CdiSpecs::CdiSpecs(Settings settings, Ports ports) : settings_(std::move(settings)), ports_(std::move(ports)) {}

void CdiSpecs::set_node(grant::NodeUnitsPtr node) {
  CdiTexts texts = cdi_texts(*node, settings_.grant, settings_.directory);
  const bool is_first = !wanted_;
  if (is_first || *wanted_ != texts) wanted_ = std::make_shared<const CdiTexts>(std::move(texts));
  waiting_ = std::move(node);
  if (wanted_ == written_ || is_late_) show();
  if (wanted_ != written_) begin();
  if (is_first) check();
}

// One after the other: a job that hangs is not joined by another.
void CdiSpecs::begin() {
  if (is_running_) return;
  is_running_ = true;
  const SteadyTime late_at = ports_.clock.now() + kPatience;
  ports_.post(late_at, [weak = weak_from_this(), job = ++jobs_] {
    if (const auto self = weak.lock()) self->late(job);
  });
  ports_.run([weak = weak_from_this(), post = ports_.post, now = ports_.clock.now(), texts = wanted_,
              directory = settings_.directory] {
    Written written = write(*texts, directory);
    post(now, [weak, texts, written = std::move(written)] {
      if (const auto self = weak.lock()) self->ended(texts, written);
    });
  });
}

CdiSpecs::Written CdiSpecs::write(const CdiTexts& texts, const std::string& directory) {
  Written written;
  for (const auto& [path, text] : texts) {
    const auto kept = keep_file(path, text);
    if (kept) written.is_changed |= *kept;
    if (!kept && written.error.empty()) written.error = kept.error().message;
  }
  written.is_dead = !written.error.empty() && is_removed_directory(directory);
  return written;
}

void CdiSpecs::ended(const TextsPtr& texts, const Written& written) {
  is_running_ = is_late_ = false;
  const bool is_restored = written.is_changed && texts == written_;
  written_ = written.error.empty() ? texts : nullptr;
  log_state(written.error);
  if (is_restored && written_) spdlog::warn("CDI specs restored, files had been removed or changed");
  if (written.is_dead) ports_.directory_is_dead();
  if (texts == wanted_) {
    show();
  } else {
    begin();
  }
}

void CdiSpecs::late(std::uint64_t job) {
  if (!is_running_ || job != jobs_) return;
  is_late_ = true;
  log_state(fmt::format("{} did not answer within {} s", settings_.directory, kPatience.count() / 1000));
  show();
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

void CdiSpecs::log_state(const std::string& error) {
  if (error == error_) return;
  if (!error.empty()) spdlog::error("CDI specs not written, containers may fail to start: {}", error);
  if (error.empty()) spdlog::info("CDI specs written again");
  error_ = error;
}

}  // namespace neuron::plugin
