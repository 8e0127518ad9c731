#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "agent/base/clock.h"
#include "agent/model/resource.h"

namespace neuron::plugin {

// Holds back Allocate while a list of ours is on its way into the kubelet's checkpoint. The kubelet writes that file
// after every ListAndWatch message and once per container, and containers are told apart by it
// (holdings::AdmissionMark): a list that arrived between the two answers of one container would look like its end. So
// an admission begins only when every list has been written; none is sent while one goes on (QuietMoment). Usually
// nothing is on its way; else the wait is that of one small file's fsync. Holds no thread. Thread-safe.
class ListGate {
 public:
  using Go = std::function<void()>;  // answers the held Allocate; must not call the gate

  // A list that was not written by then never will be: its kubelet is gone. Nor is an Allocate held for longer.
  static constexpr std::chrono::milliseconds kPatience{1000};

  explicit ListGate(const Clock& clock);  // must outlive the gate
  ~ListGate();
  ListGate(const ListGate&) = delete;
  ListGate& operator=(const ListGate&) = delete;

  void sent();                // a ListAndWatch message was handed to gRPC
  void checkpoint_written();  // once per rename of the kubelet's file
  void kubelet_is_new();      // what was on its way to its predecessor does not arrive

  // False: nothing is on its way, the caller answers at once and `go` is dropped. True: `go` is called once, by
  // whichever of the other methods ends the wait.
  [[nodiscard]] bool hold(model::Resource resource, Go go);

  // Keeps `go` until a list that is sent after this call has been written, at most kPatience.
  void hold_for_next(model::Resource resource, Go go);

  // Ends the waits whose patience is over. Returns when the next one is, if any waits.
  std::optional<SteadyTime> expire();

  [[nodiscard]] bool holds() const;        // an Allocate waits here
  void release(model::Resource resource);  // its server is going away: answers what it holds of the resource

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace neuron::plugin
