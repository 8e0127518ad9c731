#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "plugin/dra/claims_file.h"

namespace neuron::plugin::dra {

// Serializes access to the file of what is prepared, across threads of this process and other instances of the driver,
// of which two overlap in a rolling update. Thread-safe.
class PreparedClaims {
 public:
  struct Options {
    std::string directory;  // plugins/<driver>: claims.json, and claims.lock beside it; made if missing
    std::string boot_id;    // as ClaimsFile has it
    std::chrono::milliseconds patience{10'000};  // with another instance; it needs milliseconds
  };

  PreparedClaims(Options options, ClaimsFile::Rebuild rebuild);

  // Runs `work` with the lock and the file as it is now; what it returns is returned. `work` must block on nothing but
  // files. Errors beside: unavailable when another instance has the lock at the end of the patience, which is that
  // of the call however many wait, and says whose calls took the time; from errno. Logs what was wrong with the file.
  using Work = std::function<Result<void>(ClaimsFile&)>;
  [[nodiscard]] Result<void> edit(const Work& work) EXCLUDES(mutex_);

 private:
  using SteadyDuration = std::chrono::steady_clock::duration;
  [[nodiscard]] Result<void> with_lock(const Work& work) REQUIRES(mutex_);

  const Options options_;
  std::atomic<SteadyDuration> held_{SteadyDuration::zero()};  // for so long calls of this process had the file, ever
  Mutex mutex_;
  ClaimsFile file_ GUARDED_BY(mutex_);
};

}  // namespace neuron::plugin::dra
