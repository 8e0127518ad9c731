#include "test/model/paths.h"

#include <map>
#include <set>

#include "plugin/kubelet/checkpoint.h"
#include "tools/neuron-sim/kubelet/plugin_client.h"

namespace neuron::check {
namespace {

struct Names {
  std::map<std::string, PluginSocket*> sockets;
  std::map<std::string, CheckpointFile*> files;
  std::function<void(AdmissionStep)> on_step;
};

Names& names() {
  static Names all;  // the one file system there is
  return all;
}

void step(AdmissionStep step) {
  if (names().on_step) names().on_step(step);
}

template <typename T>
T* find(const std::map<std::string, T*>& in, const std::string& path) {
  const auto found = in.find(path);
  return found == in.end() ? nullptr : found->second;
}

std::vector<model::Allocation> shown(const sim::Checkpoint& content) {
  std::vector<model::Allocation> all;
  for (const sim::CheckpointEntry& entry : content.entries) {
    std::set<std::string> ids;
    for (const auto& [node, list] : entry.ids_by_numa) ids.insert(list.begin(), list.end());
    if (ids.empty()) continue;
    all.push_back({"", "", entry.container, entry.resource, {ids.begin(), ids.end()}, entry.pod_uid});
  }
  return all;
}

}  // namespace

void listen_at(const std::string& path, PluginSocket& socket) {
  names().sockets[path] = &socket;
}

void stop_listening(const std::string& path) {
  names().sockets.erase(path);
}

void watch_admissions(std::function<void(AdmissionStep)> on_step) {
  names().on_step = std::move(on_step);
}

CheckpointFile::CheckpointFile(std::string path, const Clock& clock,
                               std::function<bool(const sim::Checkpoint&)> on_write)
    : path_(std::move(path)), clock_(clock), on_write_(std::move(on_write)) {
  names().files[path_] = this;
}

CheckpointFile::~CheckpointFile() {
  names().files.erase(path_);
}

void CheckpointFile::land(const sim::Checkpoint& content, SteadyTime written_at) {
  content_ = content;
  written_at_ = written_at;
  ++version_;
}

Result<plugin::Checkpoint> CheckpointFile::read() const {
  if (!content_) return fail(ErrorCode::not_found, path_);
  plugin::Checkpoint checkpoint;
  checkpoint.allocations = shown(*content_);
  checkpoint.version = version_;
  checkpoint.written_at = written_at_;
  return checkpoint;
}

}  // namespace neuron::check

namespace neuron::sim {

PluginClient::PluginClient(std::string resource, std::string socket_path)
    : resource_(std::move(resource)), socket_path_(std::move(socket_path)), channel_(), stub_() {}

Result<PluginOptions> PluginClient::options(const grpc::ServerContext& /*register_call*/) {
  return PluginOptions{};
}

Result<std::vector<std::string>> PluginClient::preferred(const std::vector<std::string>& available,
                                                         const std::vector<std::string>& must_include, int size) {
  check::step(check::AdmissionStep::before_preferred);
  check::PluginSocket* socket = check::find(check::names().sockets, socket_path_);
  if (socket == nullptr) return fail(ErrorCode::unavailable, "nobody listens");
  return socket->preferred(available, must_include, size);
}

Result<v1beta1::ContainerAllocateResponse> PluginClient::allocate(const std::vector<std::string>& ids) {
  check::step(check::AdmissionStep::before_allocate);
  check::PluginSocket* socket = check::find(check::names().sockets, socket_path_);
  Result<v1beta1::ContainerAllocateResponse> answer = fail(ErrorCode::unavailable, "nobody listens");
  if (socket != nullptr) answer = socket->allocate(ids);
  check::step(check::AdmissionStep::after_allocate);
  return answer;
}

Result<void> PluginClient::pre_start(const std::vector<std::string>& /*ids*/) {
  return {};
}

void PluginClient::disconnect() {}

Result<void> write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  check::CheckpointFile* file = check::find(check::names().files, path);
  if (file == nullptr) return fail(ErrorCode::not_found, path);
  file->write(checkpoint);
  return {};
}

Result<Checkpoint> read_checkpoint(const std::string& path) {
  const check::CheckpointFile* file = check::find(check::names().files, path);
  if (file == nullptr || !file->content()) return fail(ErrorCode::not_found, path);
  return *file->content();
}

}  // namespace neuron::sim
