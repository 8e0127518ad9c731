#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/result.h"
#include "agent/base/workers.h"
#include "agent/core/logical_cores.h"
#include "agent/holdings/holding.h"
#include "agent/model/allocation.h"

// The kubelet's device manager checkpoint, <kubelet>/device-plugins/kubelet_internal_checkpoint
// (docs/reference/kubelet.md#capacity-and-checkpoint). The kubelet writes it once per container, after all resources of
// the container are allocated, and after every ListAndWatch message; always as a new file renamed into place.
namespace neuron::plugin {

inline constexpr std::string_view kCheckpointName = "kubelet_internal_checkpoint";

// Identity of the file as it is now (inode, time, size); 0 when there is none. One stat, never blocks on contents.
[[nodiscard]] holdings::CheckpointVersion checkpoint_version(const std::string& path);

// Reads the version without waiting for a disk: nullopt when the kernel would have to ask it, or lacks such a read
// (before Linux 5.12). Never blocks.
[[nodiscard]] std::optional<holdings::CheckpointVersion> cached_checkpoint_version(const std::string& path);

// The checkpoint's content on the resources of this agent.
struct Checkpoint {
  std::vector<model::Allocation> allocations;  // PodDeviceEntries, in the file's order; pods by their uids
  core::NumberingEvidence numbering;           // of neuroncore: its entries with the /dev/neuron<N> of their AllocResp
  // RegisteredDevices: units of the last list that the kubelet accepted as healthy; each ascending and once.
  std::vector<int> listed_devices;  // device indices, of neuron and neurondevice
  std::vector<int> listed_cores;    // core ids, of neuroncore
  // Containers with verbs nodes from another resource, whose AllocResp holds /dev/infiniband/uverbs: "RESOURCE pod
  // UID/CONTAINER", sorted; the first 8.
  std::vector<std::string> verbs_takers;
  holdings::CheckpointVersion version = 0;  // of the file that was read
  SteadyTime written_at{};                  // its mtime; as wrong as the machine's time has moved since
};

// In one pass that keeps nothing of the text but this. Any field may be missing or of another type: such an entry or id
// is skipped, and so are numbers above 65535 in all but `allocations`. Errors: data_corrupt when the text is not a JSON
// object of the known shape, or has more than 65,536 device ids in entries of these resources.
[[nodiscard]] Result<Checkpoint> parse_checkpoint(std::string_view text);

// The file at `path`, at most 16 MiB. Blocks on file reads. Errors: not_found, permission_denied, data_corrupt.
[[nodiscard]] Result<Checkpoint> read_checkpoint(const std::string& path);

// Whether the kubelet may have prepared claims for pods, by its own record of them, dra_manager_state in `kubelet_dir`:
// false only if there is no such file, or none in it. Blocks on file reads.
[[nodiscard]] bool may_hold_claims(const std::string& kubelet_dir);

// The kubelet's checkpoint, read again for each question. Any thread.
class CheckpointSource {
 public:
  virtual ~CheckpointSource() = default;
  [[nodiscard]] virtual holdings::CheckpointVersion version() const = 0;  // checkpoint_version()
  [[nodiscard]] virtual Result<Checkpoint> read() const = 0;              // read_checkpoint()
};

// The file of that name in the kubelet's directory.
class CheckpointFile final : public CheckpointSource {
 public:
  explicit CheckpointFile(const std::string& directory) : path_(directory + "/" + std::string(kCheckpointName)) {}
  [[nodiscard]] holdings::CheckpointVersion version() const override { return checkpoint_version(path_); }
  [[nodiscard]] Result<Checkpoint> read() const override { return read_checkpoint(path_); }

 private:
  std::string path_;
};

// The checkpoint file on a disk that may hang: it is read on `workers`, for so long, and given up then. While a call
// hangs no other is begun, and every answer comes at once: that it cannot be read, and a version of 0. Any thread.
class WatchedCheckpoint final : public CheckpointSource {
 public:
  static constexpr std::chrono::milliseconds kReadBudget{1000};
  static constexpr std::chrono::milliseconds kVersionBudget{500};

  // `came_back`: every call that was given up has ended, so that it is worth reading again; on one of the workers, must
  // not block, never after the destructor. Empty: nothing is called. `workers` must outlive this object.
  WatchedCheckpoint(const std::string& directory, Workers& workers, std::function<void()> came_back = {});

  // Reads from the page cache, where a file is that the kubelet has just written; on a worker only when it is not
  // there.
  [[nodiscard]] holdings::CheckpointVersion version() const override;
  [[nodiscard]] Result<Checkpoint> read() const override;  // deadline_exceeded, too: it hangs

 private:
  const std::string path_;
  const BoundedCalls calls_;
};

}  // namespace neuron::plugin
