#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "agent/grant/grant.h"
#include "plugin/dra/claim/claim_grant.h"
#include "plugin/dra/claim/claim_plan.h"
#include "plugin/dra/claim/claim_request.h"

// The record of a claim that is prepared, the file of all records, and the store that keeps it and the CDI files under
// one lock (record_store.cpp; docs/adr/0011-dra.md). The kubelet keeps the answers in its memory only, and asks again
// when they are gone.
namespace neuron::plugin::dra {

struct RecordedRequest {
  PlannedRequest planned;
  Environment environment;
};

struct ClaimRecord {
  // Not completed: its CDI file may or may not be there, and the kubelet has no answer. A crash leaves that behind, or
  // a CDI file that cannot be written; it holds nothing.
  bool is_completed = false;
  std::string claim_namespace;  // "" with `name`: not known, as it was rebuilt from its CDI file
  std::string name;
  std::string uid;
  std::string resource_version;
  std::vector<RecordedRequest> requests;
  std::vector<PreparedDevice> devices;  // as answered to the kubelet
  std::string cdi_text;                 // of its file, written again when that is gone; "" = it has none
  // The node's LNC by which cores were numbered then; nullopt: not known, as of claims of an older version.
  std::optional<int> node_lnc{};
  // The longest grace period of the pods that it was prepared for, also later; nullopt: not known, as some could not be
  // read.
  std::optional<std::chrono::seconds> grace{};
  // True for an entry of another version that this one cannot read: its content comes from its CDI file. Not kept on
  // disk; the entry stays as it is until the claim is prepared again or released.
  bool is_unread = false;

  // Hardware held exclusively: none by admin access, and none before the claim is completed.
  [[nodiscard]] Hardware held() const;
  // Whether the kubelet can be answered without the API server: not when rebuilt from a CDI file.
  [[nodiscard]] bool is_whole() const;
  // "default/name (uid …)", or "with uid …".
  [[nodiscard]] std::string shown() const;
};

// The cores of its shares, by their ids. Pure.
[[nodiscard]] ChosenShares shares_of(const ClaimRecord& record);

// Writes and reads a record as one JSON object. Fields that this version does not know are ignored. Errors:
// data_corrupt when it is no object with a uid, a field that is known has another type, or the state is another than
// completed or started. Pure.
[[nodiscard]] std::string to_text(const ClaimRecord& record);
[[nodiscard]] Result<ClaimRecord> parse_record(std::string_view text);

// The file of all records and its changes. Other versions of the agent write it too: fields and entries that this one
// does not understand stay as they are. Not synchronised: only LockedRecordFile gives access. Blocks on files.
class RecordFile {
 public:
  // The records that the CDI files allow to rebuild.
  using Rebuild = std::function<Result<std::vector<ClaimRecord>>()>;

  // `boot_id`: of the running system; "" = not known. Claims prepared in another boot are no longer in use.
  RecordFile(std::string path, std::string boot_id, Rebuild rebuild);

  // Reads the content of the file. A damaged file is set aside as "<path>.damaged"; then, and when there is none, the
  // content is that of `rebuild`, and written. Errors: from errno, naming the path; those of `rebuild`.
  [[nodiscard]] Result<void> read();
  // Problems of the file since the last call; "" = none.
  [[nodiscard]] std::string take_news() { return std::exchange(news_, {}); }

  // Also entries of another version that this one cannot read, as far as their CDI files show them.
  [[nodiscard]] const ClaimRecords& records() const { return content_.records; }
  // True too for one that another version wrote, and this one cannot read.
  [[nodiscard]] bool knows(const std::string& uid) const { return content_.texts.contains(uid); }

  // Changes are in the file, whole or not at all, when the call returns; also in records() unless it fails. Errors:
  // from errno, naming the path. While a record can be put, room is kept on the disk in which it can be completed, and
  // any can be removed and released, when that is full.
  [[nodiscard]] Result<void> put(const ClaimRecord& record);
  // Replaces a record rebuilt from a CDI file in records(), and on disk unless that fails or the entry there is of
  // another version, which stays.
  void learn(const ClaimRecord& record);
  [[nodiscard]] Result<void> remove(const std::string& uid);  // no error when it is not there

  // Releases are counted. A Prepare that began before its claim was released must not bring it back: it keeps
  // releases() of its begin, and asks before it writes.
  [[nodiscard]] std::uint64_t releases() const { return content_.releases; }
  // Removes the record, known or not, and counts that. Of one that is not known it is no error that the disk is full.
  [[nodiscard]] Result<void> release(const std::string& uid);
  // True too when it is not known any more.
  [[nodiscard]] bool was_released_since(const std::string& uid, std::uint64_t releases) const;

 private:
  struct Content {
    ClaimRecords records;
    std::map<std::string, std::string> texts;                     // of each entry by uid, as it is in the file
    std::uint64_t releases = 0;                                   // so many, ever
    std::vector<std::pair<std::string, std::uint64_t>> released;  // the newest: uid, and the number of its release
    std::string boot_id;
    std::string rest = "{}";  // a JSON object: fields of the file that this version does not know
  };

  [[nodiscard]] static Result<Content> parse(std::string_view text);
  [[nodiscard]] static std::string text_of(const Content& content);
  [[nodiscard]] Result<void> add_unread();
  [[nodiscard]] Result<void> begin_anew(const std::string& why);
  [[nodiscard]] Result<void> change(const std::string& uid, const ClaimRecord* record);
  [[nodiscard]] Result<void> write();
  [[nodiscard]] Result<void> write_with_reserve();

  const std::string path_;
  const std::string boot_id_;
  const Rebuild rebuild_;
  std::string text_;  // the file as last read or written
  Content content_;   // what it says, and releases of unknown claims that found no room
  std::string news_;
};

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
  // files. Other errors: unavailable when another instance still has the lock at the end of the patience, which
  // counts from the start of this call, also while it queues, or when a call of this process hangs; from errno. Logs
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
  // Since when the one call that has file_ has had it; set again when it has the file's lock.
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
  // `node`: the newest snapshot's, nullptr before the first; called when the file has to be rebuilt from CDI files, and
  // for claims that were rebuilt before.
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

  // Releases the claim if its record is unchanged since `record` was read; false: it has changed, and stays.
  [[nodiscard]] Result<bool> release_if(const std::shared_ptr<const ClaimRecord>& record) EXCLUDES(held_mutex_);

  // Its grace period is that long at least, where one is known.
  [[nodiscard]] Result<void> extend_grace(const std::string& uid, std::chrono::seconds grace) EXCLUDES(held_mutex_);

  // Sets the name of a claim that was rebuilt without one.
  [[nodiscard]] Result<void> set_name(const std::string& uid, const std::string& claim_namespace,
                                      const std::string& name) EXCLUDES(held_mutex_);

  // Writes CDI files of prepared claims that are missing or differ from newest_cdi_text() by the newest snapshot,
  // removes those of no claim, and drops claims that a crash left half-prepared. Errors: the first one; the rest is
  // still done.
  [[nodiscard]] Result<void> repair() EXCLUDES(held_mutex_);

  // While a repair hangs in its files, all other calls are refused at once (unavailable) instead of hanging too.
  void set_hanging(bool hangs) { hangs_ = hangs; }

  // The record as this instance last read it. Names of the pool devices that claims hold (admin access does not),
  // ascending.
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
  // Writes the CDI file by the newest snapshot. Before the first snapshot an existing file stays: it may be newer than
  // the record. Reports a dead directory.
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
