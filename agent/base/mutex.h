#pragma once

#include <condition_variable>
#include <mutex>

// Lock annotations for clang's -Wthread-safety; nothing for other compilers.
#if defined(__clang__)
#define NEURON_ANNOTATE(x) __attribute__((x))
#else
#define NEURON_ANNOTATE(x)
#endif
#if !defined(GUARDED_BY)  // protobuf's headers define the same word with the same meaning
#define GUARDED_BY(x) NEURON_ANNOTATE(guarded_by(x))
#endif
#define REQUIRES(...) NEURON_ANNOTATE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) NEURON_ANNOTATE(locks_excluded(__VA_ARGS__))

namespace neuron {

// std::mutex that clang can check (libstdc++'s carries no annotations).
class NEURON_ANNOTATE(capability("mutex")) Mutex {
 public:
  void lock() NEURON_ANNOTATE(acquire_capability()) { mutex_.lock(); }
  void unlock() NEURON_ANNOTATE(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// Holds a Mutex for one scope.
class NEURON_ANNOTATE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) NEURON_ANNOTATE(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() NEURON_ANNOTATE(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace neuron
