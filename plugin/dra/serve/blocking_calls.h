#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>

namespace neuron::plugin::dra {

// Calls that may block, answered away from gRPC's threads: a claim that waits for the API server or for hardware keeps
// nobody else waiting. A peer that cancels its call stops the job. Whoever shuts the server down can be sure that every
// call is finished: one that is never finished holds up gRPC's shutdown for ever. All methods from any thread.
class BlockingCalls {
 public:
  using Commit = std::function<grpc::Status()>;               // fills gRPC's response; left out when nobody waits
  using Job = std::function<Commit(const std::stop_token&)>;  // may block; owns all that it reads
  using Run = std::function<void(std::function<void()>)>;     // on a thread of its own, at once
  static constexpr std::size_t kMostCalls = 128;              // at once; no node has as many pods with claims

  explicit BlockingCalls(Run run);
  ~BlockingCalls();  // close() without patience
  BlockingCalls(const BlockingCalls&) = delete;
  BlockingCalls& operator=(const BlockingCalls&) = delete;

  // The reactor that the handler gives to gRPC. UNAVAILABLE after close(), RESOURCE_EXHAUSTED beyond kMostCalls.
  [[nodiscard]] grpc::ServerUnaryReactor* start(Job job);

  // No new calls; waits for those that run, then stops them, then answers UNAVAILABLE for those that do not stop.
  // Returns within the sum of both times; a job may still run then, and nobody listens to it. Idempotent.
  void close(std::chrono::milliseconds patience, std::chrono::milliseconds after_stop);

  [[nodiscard]] std::size_t running() const;  // calls that are not answered yet

 private:
  class Call;
  struct State;
  const Run run_;
  const std::shared_ptr<State> state_;  // shared with calls, which may outlive this object
};

}  // namespace neuron::plugin::dra
