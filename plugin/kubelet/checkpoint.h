#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/holdings/ledger.h"
#include "agent/holdings/shown.h"

// The kubelet's device manager checkpoint, <kubelet>/device-plugins/kubelet_internal_checkpoint
// (docs/reference/kubelet.md#capacity-and-checkpoint). The kubelet writes it once per container, after all resources of
// the container are allocated, and after every ListAndWatch message; always as a new file renamed into place.
namespace neuron::plugin {

inline constexpr std::string_view kCheckpointName = "kubelet_internal_checkpoint";

// Identity of the file as it is now (inode, time, size); 0 when there is none. One stat, never blocks on contents.
[[nodiscard]] holdings::CheckpointVersion checkpoint_version(const std::string& path);

// Entries of the resources this agent serves; holders read "pod <uid>/<container>". Any field may be missing or of
// another type: such an entry is skipped. Errors: data_corrupt when the text is no JSON object of the known shape, or
// has more than 65,536 device ids of these resources. Keeps nothing of the text but these entries.
[[nodiscard]] Result<std::vector<holdings::ShownHolding>> parse_checkpoint(std::string_view text);

struct CheckpointText {
  std::string text;
  holdings::CheckpointVersion version = 0;  // of the file that was read
};

// The whole file, at most 16 MiB. Errors: not_found, permission_denied, data_corrupt.
[[nodiscard]] Result<CheckpointText> read_checkpoint_text(const std::string& path);

struct StoredHoldings {
  std::vector<holdings::ShownHolding> holdings;
  holdings::CheckpointVersion version = 0;  // of the file that was read
};

// Reads and parses it. Errors: as read_checkpoint_text.
[[nodiscard]] Result<StoredHoldings> read_checkpoint(const std::string& path);

}  // namespace neuron::plugin
