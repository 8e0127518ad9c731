#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "plugin/dra/claim/claims_file.h"

namespace neuron::plugin::dra {

// Serializes access to the file of what is prepared, across threads of this process and other instances of the driver,
// of which two overlap in a rolling update. A call that hangs in the file system holds up others for so long only.
// Thread-safe.
class PreparedClaims {
 public:
  struct Options {
    std::string directory;  // plugins/<driver>: claims.json, and claims.lock beside it; made if missing
    std::string boot_id;    // as ClaimsFile has it
    std::chrono::milliseconds patience{10'000};  // with another instance; it needs milliseconds
    std::chrono::milliseconds hang{12'000};      // a call of this instance that takes longer hangs
  };

  PreparedClaims(Options options, ClaimsFile::Rebuild rebuild);

  // Runs `work` with the lock and the file as it is now; what it returns is returned. `work` must block on nothing but
  // files. Errors beside: unavailable when another instance has the lock at the end of the patience, which is that
  // of the call however many wait, and says whose calls took the time, or when one of this process hangs; from errno.
  // Logs what was wrong with the file.
  using Work = std::function<Result<void>(ClaimsFile&)>;
  [[nodiscard]] Result<void> edit(const Work& work) EXCLUDES(mutex_);

 private:
  using SteadyDuration = std::chrono::steady_clock::duration;
  class Turn;
  [[nodiscard]] Result<void> take_turn() EXCLUDES(mutex_);
  [[nodiscard]] Result<void> with_lock(const Work& work);

  const Options options_;
  std::atomic<SteadyDuration> held_{SteadyDuration::zero()};  // for so long calls of this process had the file, ever
  Mutex mutex_;
  std::condition_variable_any turn_ended_;
  std::optional<SteadyTime> turn_since_
      GUARDED_BY(mutex_);  // of the one call that has file_; anew with the file's lock
  ClaimsFile file_;        // of that call
};

}  // namespace neuron::plugin::dra
