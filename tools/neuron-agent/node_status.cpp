#include "tools/neuron-agent/node_status.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace neuron::agent {

NodeStatus::NodeStatus(const Options& options, const Clock& clock, kube::Api* shared) {
  if (!options.node_status.enabled) return;
  if (shared == nullptr) {
    auto places = kube::api_places(options.api, kube::in_cluster_places());
    if (!places) {
      spdlog::error("node status not updated: {}", places.error().message);
      return;
    }
    client_ = std::make_unique<kube::ApiClient>(*std::move(places));
    counted_ = std::make_unique<CountedApi>(*client_);
    placed_ = std::make_unique<NodePlaceApi>(*counted_, options.node_name);
    shared = placed_.get();
  }
  writer_ = std::make_unique<status::StatusWriter>(
      *shared, status::StatusWriter::Settings{.node = options.node_name, .report = options.node_status.report}, clock);
  thread_ = std::jthread([this](const std::stop_token& stop) { writer_->run(stop); });
}

void NodeStatus::set(const model::SnapshotPtr& snapshot) {
  if (writer_) writer_->set(snapshot);
}

std::map<std::string, std::uint64_t> NodeStatus::api_calls() const {
  return counted_ ? counted_->counts() : std::map<std::string, std::uint64_t>();
}

void NodeStatus::stop() {
  thread_.request_stop();
  if (client_) client_->close();
  if (thread_.joinable()) thread_.join();
}

}  // namespace neuron::agent
