#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/result.h"
#include "deviceplugin/v1beta1/api.pb.h"
#include "plugin/kubelet/checkpoint.h"
#include "tools/neuron-sim/kubelet/allocation.h"

// What the machine's file system is to the kubelet and the agent: plugin sockets and the checkpoint file, found by
// path, but in memory. paths.cpp defines the kubelet stand-in's plugin client and checkpoint functions on top of it, in
// place of the ones that use gRPC and files; the agent's classes are the real ones. One thread.
namespace neuron::check {

// A plugin behind its socket.
class PluginSocket {
 public:
  virtual ~PluginSocket() = default;
  [[nodiscard]] virtual Result<std::vector<std::string>> preferred(const std::vector<std::string>& available,
                                                                   const std::vector<std::string>& must_include,
                                                                   int size) = 0;
  [[nodiscard]] virtual Result<v1beta1::ContainerAllocateResponse> allocate(const std::vector<std::string>& ids) = 0;
};

// Makes `socket` answer at `path` until stop_listening().
void listen_at(const std::string& path, PluginSocket& socket);
void stop_listening(const std::string& path);

// The calls to a plugin during an admission. The device manager's lock is free at each of them, as in the real kubelet.
enum class AdmissionStep { before_preferred, before_allocate, after_allocate };

// Called at each of them until the next call of this function; null: no call.
void watch_admissions(std::function<void(AdmissionStep)> on_step);

// kubelet_internal_checkpoint. Every write is a new file: the version changes.
class CheckpointFile final : public plugin::CheckpointSource {
 public:
  // `on_write` decides about each write of the kubelet: true = it lands now, false = the caller keeps it and calls
  // land() later.
  CheckpointFile(std::string path, const Clock& clock, std::function<bool(const sim::Checkpoint&)> on_write);
  ~CheckpointFile() override;
  CheckpointFile(const CheckpointFile&) = delete;
  CheckpointFile& operator=(const CheckpointFile&) = delete;

  void write(const sim::Checkpoint& content) {
    if (on_write_(content)) land(content, clock_.now());
  }
  void land(const sim::Checkpoint& content, SteadyTime written_at);

  [[nodiscard]] const std::optional<sim::Checkpoint>& content() const { return content_; }

  // As plugin::CheckpointFile reads the real one.
  [[nodiscard]] holdings::CheckpointVersion version() const override { return version_; }
  [[nodiscard]] Result<plugin::Checkpoint> read() const override;

 private:
  std::string path_;
  const Clock& clock_;
  std::function<bool(const sim::Checkpoint&)> on_write_;
  std::optional<sim::Checkpoint> content_;
  SteadyTime written_at_{};
  holdings::CheckpointVersion version_ = 0;
};

}  // namespace neuron::check
