#include "plugin/device/cdi_files.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "agent/base/fd.h"
#include "agent/grant/grant.h"

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
