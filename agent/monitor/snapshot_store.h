#pragma once

#include "agent/base/mutex.h"
#include "agent/model/snapshot.h"

namespace neuron::monitor {

// The newest snapshot. One writer (the monitor), any number of readers; both sides hold the lock only for a pointer
// copy.
class SnapshotStore {
 public:
  // nullptr until the first publish.
  [[nodiscard]] model::SnapshotPtr newest() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return newest_;
  }
  void publish(model::SnapshotPtr snapshot) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    newest_.swap(snapshot);
  }

 private:
  mutable Mutex mutex_;
  model::SnapshotPtr newest_ GUARDED_BY(mutex_);
};

}  // namespace neuron::monitor
