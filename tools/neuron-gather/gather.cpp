#include "tools/neuron-gather/gather.h"

#include "agent/base/clock.h"
#include "agent/base/parse.h"
#include "neuron_version.h"

namespace neuron::gather {
namespace {

constexpr std::size_t kMaxManifestBytes = std::size_t{1} << 20U;

}  // namespace

std::string captured_text(const Capture& capture, const std::string& path) {
  const Entry* entry = capture.find(path);
  return entry == nullptr ? "" : printable(trim(entry->text), 64);
}

Capture gather(const host::FsRoot& root, const GatherRequest& request, const Collector::Permit& permit) {
  Capture capture;
  Collector collector(root, capture, permit);
  for (const Rule& rule : rules()) collector.collect(rule);
  collector.collect_driver_answers();
  collector.collect_processes(request.commands);
  if (request.identity == Identity::anonymise) anonymise(capture);

  Manifest manifest;
  manifest.tool_version = kVersion;
  manifest.captured_at = utc_text(request.now);
  manifest.instance_type = captured_text(capture, kProductName);
  manifest.kernel = captured_text(capture, "proc/sys/kernel/osrelease");
  manifest.origin = root.is_live() ? Origin::live : Origin::directory;
  manifest.with_commands = request.commands == Commands::include;
  manifest.anonymised = request.identity == Identity::anonymise;
  manifest.complete = !capture.full();
  std::optional<std::string> previous;
  if (!root.is_live()) {
    if (auto text = root.read_file(kManifestPath, kMaxManifestBytes)) previous = *std::move(text);
  }
  capture.add_file(kManifestPath, manifest_text(manifest, capture, previous));
  return capture;
}

}  // namespace neuron::gather
