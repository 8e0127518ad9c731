#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/fd.h"
#include "agent/base/mutex.h"
#include "agent/grant/grant.h"
#include "agent/holdings/listed_holders.h"
#include "agent/model/allocation.h"
#include "plugin/dra/claim/claim_record.h"
#include "plugin/dra/claim/claim_request.h"
#include "plugin/kubelet/cdi_files.h"

// Upkeep of prepared claims besides the kubelet's calls.
namespace neuron::plugin::dra {

// Whether an entry of PodResources is of that claim: by the uid in its CDI id; by name and devices only where it has
// none, since a claim may have been recreated under its name. Devices alone prove nothing: another claim may have the
// same ones for admin access. Of entries of this driver. Pure.
[[nodiscard]] bool is_of(const model::Allocation& listed, const ClaimRecord& record);

// Releases orphaned claims, which would be held for ever: those that the kubelet does not list and that are gone from
// the API server, or not allocated here any more (docs/reference/dra.md#prepare); of those without a name, by which the
// server could be asked, those that two whole lists lack. A container may outlast both, as when
// its pod was deleted by force. So a claim is released at once only when every core of it is known to have no memory of
// a process. Where nothing shows that (interfaces, admin access, memory that cannot be read), it stays for the longest
// grace period of its pods. One thread.
class ClaimSweep {
 public:
  struct Ports {
    // Claims of all drivers that the kubelet lists (PodResources), others too; may block.
    std::function<Result<std::vector<model::Allocation>>()> listed;
    std::function<grant::NodeUnitsPtr()> node;  // of the newest snapshot; nullptr before the first
    // Bytes of device memory that processes own; nullopt = unknown. May block without limit.
    std::function<std::optional<std::uint64_t>(int device, int physical_core)> memory_in_use;
    std::string own_pod{};  // see holdings::ListedHolders
  };
  static constexpr std::chrono::seconds kGraceMargin{60};                        // for the runtime to end containers
  static constexpr std::chrono::seconds kUnknownGrace = std::chrono::hours(24);  // of pods that could not be read

  // `store`, `api` and `clock` must outlive the sweep.
  ClaimSweep(std::string driver, std::string pool, Ports ports, RecordStore& store, kube::Api& api, const Clock& clock);

  // Every minute or so, on a thread that may hang. The API server is asked only for claims that the kubelet does not
  // list, so on a quiet node not at all. The released claims, for the log. Errors: of the list, of the store; nothing
  // is released on an API error.
  [[nodiscard]] Result<std::vector<std::string>> sweep();

 private:
  enum class Evidence { in_use, free, none };
  [[nodiscard]] bool is_gone(const ClaimRecord& record, bool is_whole_list);
  [[nodiscard]] Evidence evidence(const grant::NodeUnits& node, const ClaimRecord& record) const;
  [[nodiscard]] bool is_unused(const grant::NodeUnits& node, const ClaimRecord& record);

  const std::string driver_;
  const std::string pool_;
  const Ports ports_;
  RecordStore& store_;
  ClaimReader reader_;
  const Clock& clock_;
  holdings::ListedHolders lists_;                 // says which answers are whole
  std::map<std::string, int> unlisted_;           // by uid: in so many whole lists in a row, of claims without a name
  std::map<std::string, SteadyTime> gone_since_;  // by uid: when a claim without evidence was first seen to be gone
};

// Reports CDI files that are removed from their directory, as when another program empties it. One thread at a time.
class CdiWatch {
 public:
  // Makes the directory if it is missing. Blocks on files. nullopt: it cannot be watched.
  [[nodiscard]] static std::optional<CdiWatch> open(const std::string& directory);

  enum class News {
    nothing,
    files_gone,  // some of them
    ended,       // the directory has gone, or news were lost: open another watch
  };
  [[nodiscard]] News take();                               // since the last call; never blocks
  [[nodiscard]] int fd() const { return inotify_.get(); }  // readable when take() has something

 private:
  explicit CdiWatch(Fd inotify) : inotify_(std::move(inotify)) {}

  Fd inotify_;
};

// CDI files are written again when some were removed or the node has changed, and orphaned claims are released. All
// files are read and written by jobs that may hang.
class ClaimUpkeep {
 public:
  static constexpr std::chrono::seconds kSweepEvery{60};
  static constexpr std::chrono::milliseconds kPause{200};  // between two repairs
  static constexpr std::chrono::seconds kUnwatched{2};     // the same where inotify is not available

  using Run = std::function<void(std::function<void()>)>;  // on a thread that may hang

  struct Settings {
    std::string cdi_directory;
    std::string claims_directory;  // for the log
  };
  // All of them must outlive it and every job of `run_repair`, which gets repairs, and of `run_sweep`. `changed`:
  // something may have been released; any thread.
  struct Ports {
    Run run_repair;
    Run run_sweep;
    std::function<void()> changed;
    const Clock& clock;
    std::function<std::optional<CdiWatch>(const std::string&)> watch = CdiWatch::open;
  };
  ClaimUpkeep(RecordStore& store, ClaimSweep& sweep, Settings settings, Ports ports);

  // Repairs at once, and then when it is needed, until `stop` is requested. Blocks one thread, which touches no file.
  void run(const std::stop_token& stop);

  // Blocks until the first repair of run() has ended, or for CdiWriter::kPatience: false.
  [[nodiscard]] bool await_first() EXCLUDES(mutex_);

  // A scan differs from the one before: names of device nodes may have changed. Any thread; never blocks.
  void node_changed();

 private:
  struct Wakeup;  // an eventfd, shared with jobs
  [[nodiscard]] bool begin_repair();
  [[nodiscard]] bool end_repair() EXCLUDES(mutex_);
  [[nodiscard]] bool take_news();
  void sweep();

  RecordStore& store_;
  ClaimSweep& sweep_;
  const Settings settings_;
  const Ports ports_;
  const std::shared_ptr<Wakeup> wakeup_;  // of the loop: the node has changed, a repair has ended, or a stop
  std::atomic<bool> node_changed_{false};
  CdiWriter writer_;
  std::optional<CdiWatch> watch_;                       // of the CDI directory
  std::shared_ptr<std::optional<CdiWatch>> new_watch_;  // of the repair that is under way; null: it opens none
  const std::shared_ptr<std::atomic<bool>> sweeping_ = std::make_shared<std::atomic<bool>>(false);

  Mutex mutex_;
  std::condition_variable_any first_ended_;
  bool has_repaired_ GUARDED_BY(mutex_) = false;
};

}  // namespace neuron::plugin::dra
