#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "agent/base/clock.h"
#include "agent/kube/api_client.h"
#include "agent/model/snapshot.h"
#include "agent/status/status_writer.h"
#include "tools/neuron-agent/counted_api.h"
#include "tools/neuron-agent/node_place.h"
#include "tools/neuron-agent/options.h"

namespace neuron::agent {

// --node-status: the writer, its thread and, unless there is one, its client; nothing of all that where it is off. What
// keeps it from being (no API server is known) is logged, and the agent serves without.
class NodeStatus {
 public:
  // Starts. All references must outlive it; `shared`: what asks the server anyway.
  NodeStatus(const Options& options, const Clock& clock, kube::Api* shared = nullptr);
  ~NodeStatus() { stop(); }
  NodeStatus(const NodeStatus&) = delete;
  NodeStatus& operator=(const NodeStatus&) = delete;

  void set(const model::SnapshotPtr& snapshot);  // any thread; does not block
  // Ends the thread; what is at the server stays. A call that is under way is broken off, with `shared` only if that is
  // closed before.
  void stop();
  // By outcome, of a client of its own; empty otherwise. Any thread.
  [[nodiscard]] std::map<std::string, std::uint64_t> api_calls() const;
  // As a client of its own was told; empty otherwise. Any thread.
  [[nodiscard]] NodePlace place() const { return placed_ ? placed_->place() : NodePlace{}; }

 private:
  std::unique_ptr<kube::ApiClient> client_;  // null: shared, or off
  std::unique_ptr<CountedApi> counted_;      // of client_
  std::unique_ptr<NodePlaceApi> placed_;     // of counted_
  std::unique_ptr<status::StatusWriter> writer_;
  std::jthread thread_;
};

}  // namespace neuron::agent
