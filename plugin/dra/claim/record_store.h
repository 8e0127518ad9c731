#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/grant/node_units.h"
#include "plugin/dra/claim/claim_cdi_files.h"
#include "plugin/dra/claim/claim_record.h"

namespace neuron::plugin::dra {

// The file of all records under its lock, across threads of this process and other instances of the driver, of which
// two overlap in a rolling update. A call that hangs in the file system holds up others for a limited time only.
// Thread-safe.
class LockedRecordFile {
 public:
  struct Options {
    std::string directory;  // plugins/<driver>: claims.json, and claims.lock beside it; made if missing
    std::string boot_id;    // as RecordFile has it
    std::chrono::milliseconds patience{10'000};  // with another instance; it needs milliseconds
    std::chrono::milliseconds hang{12'000};      // a call of this instance that takes longer hangs
  };

  LockedRecordFile(Options options, RecordFile::Rebuild rebuild);

  // Runs `work` with the lock and the file as it is now, and returns its result. `work` must block on nothing but
  // files. Other errors: unavailable when another instance has the lock at the end of the patience, which is that of
  // the call however many wait, naming whose calls took the time, or when one of this process hangs; from errno. Logs
  // what was wrong with the file.
  using Work = std::function<Result<void>(RecordFile&)>;
  [[nodiscard]] Result<void> edit(const Work& work) EXCLUDES(mutex_);

 private:
  using SteadyDuration = std::chrono::steady_clock::duration;
  [[nodiscard]] Result<void> take_turn() EXCLUDES(mutex_);

  const Options options_;
  std::atomic<SteadyDuration> held_{SteadyDuration::zero()};  // for so long calls of this process had the file, ever
  Mutex mutex_;
  std::condition_variable_any turn_ended_;
  // Since when the one call that has file_ has had it; set anew when it has the file's lock.
  std::optional<SteadyTime> turn_since_ GUARDED_BY(mutex_);
  RecordFile file_;  // of that call
};

// The records of prepared claims and their CDI files, which other instances of the driver change too. A crash at any
// point leaves what the next call, or repair(), puts right (docs/adr/0011-dra.md). Thread-safe; blocks on files.
class RecordStore {
 public:
  struct Options {
    std::string driver;
    std::string directory;      // plugins/<driver>; made if missing
    std::string cdi_directory;  // made if missing
    std::string boot_id;        // "" = not known
    // The CDI directory is a mount whose directory was removed on the host: only a new container gets the new one. Any
    // thread; must not block. May be empty.
    std::function<void()> cdi_is_dead{};
    grant::GrantOptions grant{};
  };
  // `node`: the newest scan's, nullptr before the first; called when the file has to be rebuilt from CDI files, and for
  // claims that were rebuilt before.
  RecordStore(Options options, std::function<grant::NodeUnitsPtr()> node);

  struct View {
    std::uint64_t releases = 0;  // for commit()
    ClaimRecords records;        // completed ones
  };
  [[nodiscard]] Result<View> view() EXCLUDES(held_mutex_);

  // The claim is prepared as `record` has it, in place of what it was before. `releases`: of a view from before the
  // first read about the claim.
  // Errors: failed_precondition when some of its hardware is held by another claim, which is named, or used by one with
  // another LNC, when others hold devices by the numbers of another LNC of the node, or when it was released since that
  // view; those of LockedRecordFile; from errno.
  [[nodiscard]] Result<void> commit(ClaimRecord record, std::uint64_t releases) EXCLUDES(held_mutex_);

  // The CDI file of a claim that is prepared is there again. Errors: not_found when it is not prepared; from errno.
  [[nodiscard]] Result<void> write_again(const std::string& uid) EXCLUDES(held_mutex_);

  // Nothing of the claim is left, known or not, and a commit() that began earlier does not bring it back.
  [[nodiscard]] Result<void> release(const std::string& uid) EXCLUDES(held_mutex_);

  // The same of a claim that still is as it was in a view; false: it is not, and stays.
  [[nodiscard]] Result<bool> release_if(const std::shared_ptr<const ClaimRecord>& record) EXCLUDES(held_mutex_);

  // Gives its name to a claim that was rebuilt without.
  [[nodiscard]] Result<void> set_name(const std::string& uid, const std::string& claim_namespace,
                                      const std::string& name) EXCLUDES(held_mutex_);

  // Writes CDI files of prepared claims that are missing or differ from newest_cdi_text() by the newest scan, removes
  // those of no claim, and drops claims that a crash left half-prepared. Errors: the first one; the rest is still done.
  [[nodiscard]] Result<void> repair() EXCLUDES(held_mutex_);

  // A repair has not come back from its files: all other calls are refused at once (unavailable), instead of hanging as
  // well.
  void set_hanging(bool hangs) { hangs_ = hangs; }

  // As this instance has last seen the file. Names of pool devices that claims hold (admin access does not), ascending.
  [[nodiscard]] std::vector<std::string> held_devices() const EXCLUDES(held_mutex_);
  [[nodiscard]] HeldNumbering held_numbering() const EXCLUDES(held_mutex_);
  [[nodiscard]] bool is_held(const Hardware& hardware) const EXCLUDES(held_mutex_);
  [[nodiscard]] ClaimRecords held_claims() const EXCLUDES(held_mutex_);  // the same, whole

 private:
  using Work = LockedRecordFile::Work;
  [[nodiscard]] Result<void> edit(const Work& work) EXCLUDES(held_mutex_);
  [[nodiscard]] Result<void> edit_now(const Work& work) EXCLUDES(held_mutex_);  // whatever hangs
  void set_held(const RecordFile& file) EXCLUDES(held_mutex_);
  void refine(RecordFile& file) const;
  // Of the newest scan. Before the first one, a file that is there stays: it may be newer than the record. Reports
  // a directory that is dead.
  [[nodiscard]] Result<void> write_cdi(const ClaimRecord& record);
  [[nodiscard]] Result<void> release_now(RecordFile& file, const std::string& uid);

  const std::string files_;  // where they are, for messages
  std::atomic<bool> hangs_{false};
  const std::function<void()> cdi_is_dead_;
  const std::function<grant::NodeUnitsPtr()> node_;
  const grant::GrantOptions grant_;
  ClaimCdiFiles cdi_;      // under the lock of file_
  LockedRecordFile file_;  // its Rebuild uses cdi_

  mutable Mutex held_mutex_;
  ClaimRecords held_ GUARDED_BY(held_mutex_);
};

// proc/sys/kernel/random/boot_id below `root`; "" when it cannot be read. Blocks on that file.
[[nodiscard]] std::string read_boot_id(const std::string& root);

}  // namespace neuron::plugin::dra
