#include "plugin/dra/claim/claim_record.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "agent/base/fd.h"
#include "agent/base/parse.h"

namespace neuron::plugin::dra {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::string lock_path(const std::string& directory) {
  return directory + "/claims.lock";
}

Result<Fd> open_lock(const std::string& directory, const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  Fd lock(::open(path.c_str(), kFlags, 0600));
  if (!lock.valid() && errno == ENOENT) {
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error) return fail(error_from_errno(error.value(), directory));
    lock = Fd(::open(path.c_str(), kFlags, 0600));
  }
  if (!lock.valid()) return fail(error_from_errno(errno, path));
  return lock;
}

// Whether the locked file is still the one at its path: the directory may have been emptied meanwhile.
bool is_at(const Fd& file, const std::string& path) {
  struct stat held {
  }, there{};
  return ::fstat(file.get(), &held) == 0 && ::stat(path.c_str(), &there) == 0 && held.st_ino == there.st_ino &&
         held.st_dev == there.st_dev;
}

// Once at least, also when `until` has passed. nullopt: not had by then.
Result<std::optional<Fd>> take_lock(const std::string& directory, SteadyTime until) {
  constexpr milliseconds kAgain{2};
  const std::string path = lock_path(directory);
  for (;;) {
    TRY_ASSIGN(Fd lock, open_lock(directory, path));
    while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return fail(error_from_errno(errno, "locking " + path));
      if (steady_clock::now() >= until) return std::optional<Fd>();
      std::this_thread::sleep_for(kAgain);
    }
    if (is_at(lock, path)) return std::optional<Fd>(std::move(lock));
  }
}

// `own`: for how long of the patience calls of this instance had the file.
Error lock_not_had(const std::string& path, milliseconds patience, milliseconds own) {
  const auto shown = [](milliseconds time) { return std::to_string(time.count()) + " ms"; };
  if (own * 2 < patience) {
    return make_error(ErrorCode::unavailable,
                      "another instance of the driver holds " + path + " for " + shown(patience) +
                          "; retried automatically. If it persists, delete the older driver pod on this node");
  }
  return make_error(ErrorCode::unavailable,
                    "other calls of this instance held " + path + " for " + shown(own) + " of " + shown(patience) +
                        ", and another instance holds it now; retried automatically. If it persists, the disk is slow");
}

// Appends advice, which the pod's event shows, and gives errors of files their reason.
Result<void> advised(Result<void> done) {
  if (done) return done;
  Error error = std::move(done).error().with_reason(to_string(RefusalReason::claim_files));
  if (error.os_errno == ENOSPC || error.os_errno == EDQUOT) {
    error.message += ": the disk is full; free space on the node. Retried automatically";
  }
  return fail(std::move(error));
}

// Whether the claim has the device at that place of its list for admin access, which holds nothing.
bool is_admin_only(const ClaimRecord& record, std::size_t place) {
  const std::vector<std::string>& names = record.devices[place].requests;
  const std::vector<RecordedRequest>& requests = record.requests;
  if (names.empty()) {  // rebuilt from its CDI file: one request without a name per device
    return place < requests.size() && requests[place].planned.admin_access;
  }
  return std::ranges::all_of(names, [&](const std::string& name) {
    return std::ranges::any_of(
        requests, [&](const RecordedRequest& one) { return one.planned.name == name && one.planned.admin_access; });
  });
}

// Whether a share has other cores in the one than in the other.
bool differ(const ChosenShares& one, const ChosenShares& other) {
  return std::ranges::any_of(one, [&](const auto& share) {
    const auto same = other.find(share.first);
    return same != other.end() && same->second != share.second;
  });
}

}  // namespace

LockedRecordFile::LockedRecordFile(Options options, RecordFile::Rebuild rebuild)
    : options_(std::move(options)), file_(options_.directory + "/claims.json", options_.boot_id, std::move(rebuild)) {}

Result<void> LockedRecordFile::take_turn() {
  const MutexLock lock(mutex_);
  while (turn_since_) {
    const SteadyTime until = *turn_since_ + options_.hang;
    if (steady_clock::now() >= until) {
      return fail(ErrorCode::unavailable,
                  "a call of this instance that has " + options_.directory +
                      "/claims.json has not returned for more than " + std::to_string(options_.hang.count()) +
                      " ms: the file system of that directory or of the CDI directory hangs; retried automatically");
    }
    turn_ended_.wait_until(mutex_, until);
  }
  turn_since_ = steady_clock::now();
  return {};
}

Result<void> LockedRecordFile::edit(const Work& work) {
  // From here on, as the kubelet waits: first behind others of this process, then for the other instance.
  const SteadyTime begin = steady_clock::now();
  const SteadyDuration held_before = held_;
  TRY(take_turn());
  struct Turn {
    LockedRecordFile& of;
    ~Turn() {
      const MutexLock lock(of.mutex_);
      of.turn_since_.reset();
      of.turn_ended_.notify_one();
    }
  } const turn{*this};
  TRY_ASSIGN(const auto file_lock, take_lock(options_.directory, begin + options_.patience));
  const SteadyTime now = steady_clock::now();
  if (!file_lock) {
    const SteadyDuration own = std::min(held_.load() - held_before, now - begin);
    return fail(lock_not_had(lock_path(options_.directory), options_.patience, std::chrono::floor<milliseconds>(own)));
  }
  {
    const MutexLock lock(mutex_);
    turn_since_ = now;
  }
  auto done = file_.read();
  if (done) {
    if (const std::string news = file_.take_news(); !news.empty()) spdlog::warn("claims file recovered: {}", news);
    done = work(file_);
  }
  held_ = held_.load() + (steady_clock::now() - now);
  return done;
}

RecordStore::RecordStore(Options options, std::function<grant::NodeUnitsPtr()> node)
    : files_(options.cdi_directory + " or " + options.directory),
      cdi_is_dead_(std::move(options.cdi_is_dead)),
      node_(std::move(node)),
      grant_(std::move(options.grant)),
      cdi_(options.cdi_directory, options.driver),
      file_({options.directory, options.boot_id}, [this] {
        const grant::NodeUnitsPtr newest = node_();
        return cdi_.rebuild(newest.get());
      }) {}

// Claims that were rebuilt before the first scan hold whole devices instead of cores, and interfaces by their labels.
void RecordStore::refine(RecordFile& file) const {
  const grant::NodeUnitsPtr node = node_();
  if (!node) return;
  const ClaimRecords records = file.records();
  for (const auto& [uid, record] : records) {
    if (!record->is_completed || record->is_whole()) continue;
    ClaimRecord better = *record;
    for (std::size_t i = 0; i < std::min(better.requests.size(), better.devices.size()); ++i) {
      Hardware& hardware = better.requests[i].planned.hardware;
      const bool has_places =
          std::ranges::any_of(hardware.devices, [](const HeldDevice& held) { return !held.places.empty(); });
      if (has_places) continue;  // by the LNC of that time
      if (auto known = possible_hardware_of(*node, better.devices[i].device)) hardware = *std::move(known);
    }
    if (better.held() != record->held()) file.learn(better);
  }
}

Result<void> RecordStore::edit(const Work& work) {
  if (hangs_)
    return fail(ErrorCode::unavailable, RefusalReason::claim_files,
                files_ + " does not answer: its file system hangs; retried automatically");
  return edit_now(work);
}

Result<void> RecordStore::edit_now(const Work& work) {
  return advised(file_.edit([&](RecordFile& file) {
    set_held(file);  // known also while the work hangs
    refine(file);
    auto result = work(file);
    set_held(file);
    return result;
  }));
}

void RecordStore::set_held(const RecordFile& file) {
  const MutexLock lock(held_mutex_);
  held_ = file.records();
}

Result<void> RecordStore::write_cdi(const ClaimRecord& record) {
  const grant::NodeUnitsPtr node = node_();
  if (!node && cdi_.has(record.uid)) return {};
  const bool is_ours = node && !record.is_unread;  // another version's file is its own
  auto written =
      cdi_.write(record.uid, is_ours ? newest_cdi_text(record.cdi_text, record.uid, {*node, grant_}, record.node_lnc)
                                     : record.cdi_text);
  if (written || !cdi_.is_dead()) return written;
  if (cdi_is_dead_) cdi_is_dead_();
  Error error = std::move(written).error();
  error.message +=
      ": that directory was removed on the host and the driver's mount of it is stale; the driver restarts with a "
      "fresh mount, then this is retried";
  return fail(std::move(error));
}

Result<RecordStore::View> RecordStore::view() {
  View view;
  TRY(edit([&](RecordFile& file) -> Result<void> {
    view = {file.releases(), file.records()};
    return {};
  }));
  std::erase_if(view.records, [](const auto& one) { return !one.second->is_completed; });
  return view;
}

Result<void> RecordStore::commit(ClaimRecord record, std::uint64_t releases) {
  return edit([&](RecordFile& file) -> Result<void> {
    const ClaimRecords& records = file.records();
    if (file.was_released_since(record.uid, releases)) {
      return fail(ErrorCode::failed_precondition, RefusalReason::interrupted,
                  "the claim was released while it was being prepared; retried if its pod still exists");
    }
    record.is_completed = true;
    if (auto error = conflict(records, record.uid, record.held())) return fail(*std::move(error));
    std::vector<PlannedRequest> requests;
    for (const RecordedRequest& request : record.requests) requests.push_back(request.planned);
    if (auto error = lnc_clash(requests, record.node_lnc, records, record.uid)) return fail(*std::move(error));
    if (auto error = numbering_clash(record, records)) return fail(*std::move(error));
    const auto known = records.find(record.uid);
    if (known != records.end() && known->second->is_completed && differ(shares_of(*known->second), shares_of(record))) {
      return fail(ErrorCode::unavailable, RefusalReason::interrupted,
                  "another instance of the driver has just prepared the claim; retried automatically");
    }
    if (known == records.end() || !known->second->is_completed) {  // else what it holds stays held meanwhile
      record.is_completed = false;
      TRY(file.put(record));
    }
    TRY(write_cdi(record));
    record.is_completed = true;
    return file.put(record);
  });
}

Result<void> RecordStore::write_again(const std::string& uid) {
  return edit([&](RecordFile& file) -> Result<void> {
    const auto record = file.records().find(uid);
    if (record == file.records().end() || !record->second->is_completed) {
      return fail(ErrorCode::not_found, RefusalReason::interrupted,
                  "the claim was released during the call; retried automatically");
    }
    return write_cdi(*record->second);
  });
}

Result<void> RecordStore::release_now(RecordFile& file, const std::string& uid) {
  TRY(cdi_.remove(uid));
  return file.release(uid);
}

Result<void> RecordStore::release(const std::string& uid) {
  return edit([&](RecordFile& file) { return release_now(file, uid); });
}

Result<bool> RecordStore::release_if(const std::shared_ptr<const ClaimRecord>& record) {
  bool is_same = false;
  TRY(edit([&](RecordFile& file) -> Result<void> {
    const auto now = file.records().find(record->uid);
    is_same = now != file.records().end() && now->second == record;
    return is_same ? release_now(file, record->uid) : Result<void>();
  }));
  return is_same;
}

Result<void> RecordStore::extend_grace(const std::string& uid, std::chrono::seconds grace) {
  return edit([&](RecordFile& file) -> Result<void> {
    const auto known = file.records().find(uid);
    if (known == file.records().end() || !known->second->grace || *known->second->grace >= grace) return {};
    ClaimRecord record = *known->second;
    record.grace = grace;
    return file.put(record);
  });
}

Result<void> RecordStore::set_name(const std::string& uid, const std::string& claim_namespace,
                                   const std::string& name) {
  return edit([&](RecordFile& file) -> Result<void> {
    const auto known = file.records().find(uid);
    if (known == file.records().end()) return {};
    ClaimRecord record = *known->second;
    record.claim_namespace = claim_namespace;
    record.name = name;
    file.learn(record);
    return {};
  });
}

Result<void> RecordStore::repair() {
  return edit_now([&](RecordFile& file) -> Result<void> {
    Result<void> worst;
    const auto keep = [&](Result<void> result) {
      if (!result && worst) worst = std::move(result);
    };
    const auto forget = [&](const std::string& uid) -> Result<void> {
      TRY(cdi_.remove(uid));
      return file.remove(uid);
    };
    const ClaimRecords records = file.records();
    for (const auto& [uid, record] : records) keep(record->is_completed ? write_cdi(*record) : forget(uid));
    const auto uids = cdi_.uids();
    if (!uids) keep(fail(uids.error()));
    for (const std::string& uid : uids.value_or(std::vector<std::string>())) {
      if (!file.knows(uid)) keep(cdi_.remove(uid));
    }
    return worst;
  });
}

std::vector<std::string> RecordStore::held_devices() const {
  std::set<std::string> names;
  const MutexLock lock(held_mutex_);
  for (const auto& [uid, record] : held_) {
    if (!record->is_completed) continue;
    for (std::size_t i = 0; i < record->devices.size(); ++i) {
      if (!is_admin_only(*record, i)) names.insert(record->devices[i].device);
    }
  }
  return {names.begin(), names.end()};
}

HeldNumbering RecordStore::held_numbering() const {
  const MutexLock lock(held_mutex_);
  return numbering_of(held_);
}

ClaimRecords RecordStore::held_claims() const {
  const MutexLock lock(held_mutex_);
  return held_;
}

bool RecordStore::is_held(const Hardware& hardware) const {
  const MutexLock lock(held_mutex_);
  return std::ranges::any_of(held_, [&](const auto& one) { return overlap(hardware, one.second->held()).has_value(); });
}

std::string read_boot_id(const std::string& root) {
  constexpr std::size_t kMaxId = 64;
  std::ifstream file(root + "/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  id = std::string(trim(id));
  return id.size() <= kMaxId ? printable(id, kMaxId) : "";
}

}  // namespace neuron::plugin::dra
