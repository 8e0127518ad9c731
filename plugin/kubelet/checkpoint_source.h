#pragma once

#include <string>
#include <utility>

#include "plugin/kubelet/checkpoint.h"

namespace neuron::plugin {

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

}  // namespace neuron::plugin
