#include "plugin/dra/claim/claim_upkeep.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace neuron::plugin::dra {
namespace {

using std::chrono::milliseconds;

constexpr int kListsWithoutName = 2;  // in a row: a pod that begins is listed by then

bool has_devices(const model::Allocation& allocation, const ClaimRecord& record) {
  return std::ranges::all_of(record.devices, [&](const PreparedDevice& device) {
    return std::ranges::find(allocation.ids, device.share.empty() ? device.device : device.share) !=
           allocation.ids.end();
  });
}

}  // namespace

bool is_of(const model::Allocation& listed, const ClaimRecord& record) {
  if (const std::size_t name = listed.cdi_id.find('='); name != std::string::npos) {
    return std::string_view(listed.cdi_id).substr(name + 1).starts_with(record.uid + "-");
  }
  const bool has_name = !record.name.empty() && listed.pod_namespace == record.claim_namespace;
  return has_name && listed.claim == record.name && has_devices(listed, record);
}

ClaimSweep::ClaimSweep(std::string driver, std::string pool, Ports ports, RecordStore& store, kube::Api& api,
                       const Clock& clock)
    : driver_(std::move(driver)),
      pool_(std::move(pool)),
      ports_(std::move(ports)),
      store_(store),
      reader_(api, driver_),
      clock_(clock),
      lists_(ports_.own_pod) {}

bool ClaimSweep::is_gone(const ClaimRecord& record, bool is_whole_list) {
  if (record.name.empty()) return is_whole_list && ++unlisted_[record.uid] >= kListsWithoutName;
  const auto found = reader_.read_claim(record.claim_namespace, record.name);
  if (!found) return found.error().code == ErrorCode::not_found;
  return found->uid != record.uid ||
         std::ranges::none_of(found->results, [&](const AllocationResult& result) { return result.pool == pool_; });
}

// Free: every core of it is known, and no process has memory there. Interfaces show nothing.
ClaimSweep::Evidence ClaimSweep::evidence(const grant::NodeUnits& node, const ClaimRecord& record) const {
  const Hardware held = record.held();
  bool is_known = !held.devices.empty() && held.efas.empty();
  for (const HeldDevice& device : held.devices) {
    const std::vector<MemoryGate::Core> cores = cores_of(node, {{device}, {}});
    is_known &= !cores.empty() && cores.size() >= device.places.size();
    for (const MemoryGate::Core& core : cores) {
      const auto bytes = ports_.memory_in_use(core.device, core.physical);
      if (bytes.value_or(0) > 0) return Evidence::in_use;
      is_known &= bytes.has_value();
    }
  }
  return is_known ? Evidence::free : Evidence::none;
}

bool ClaimSweep::is_unused(const grant::NodeUnits& node, const ClaimRecord& record) {
  const Evidence found = evidence(node, record);
  if (found != Evidence::none) {
    gone_since_.erase(record.uid);
    return found == Evidence::free;
  }
  const SteadyTime now = clock_.now();
  return now - gone_since_.try_emplace(record.uid, now).first->second >=
         record.grace.value_or(kUnknownGrace) + kGraceMargin;
}

Result<std::vector<std::string>> ClaimSweep::sweep() {
  std::vector<std::string> released;
  const grant::NodeUnitsPtr node = ports_.node();
  TRY_ASSIGN(const RecordStore::View view, store_.view());
  if (!node || view.records.empty()) return released;
  const SteadyTime asked_at = clock_.now();
  TRY_ASSIGN(auto listed, ports_.listed());
  lists_.set_listed(
      listed, [](const auto&) { return false; }, asked_at);
  const bool is_whole_list = lists_.is_whole() && !listed.empty();  // a kubelet that has just started lists nothing
  std::erase_if(listed, [&](const auto& one) { return one.claim.empty() || one.resource_name != driver_; });
  const auto is_known = [&](const auto& one) { return view.records.contains(one.first); };
  std::erase_if(unlisted_, std::not_fn(is_known));
  std::erase_if(gone_since_, std::not_fn(is_known));
  for (const auto& [uid, held] : view.records) {
    const auto& record = *held;
    const auto found = std::ranges::find_if(listed, [&](const auto& one) { return is_of(one, record); });
    const auto may_be_it = [&](const auto& one) { return one.cdi_id.empty() && has_devices(one, record); };
    if (found != listed.end() || (record.name.empty() && std::ranges::any_of(listed, may_be_it))) {
      unlisted_.erase(uid);
      gone_since_.erase(uid);
      // Of a claim that was rebuilt from its CDI file, whose devices all have CDI ids. If it fails, the next sweep
      // does.
      if (record.name.empty() && found != listed.end()) (void)store_.set_name(uid, found->pod_namespace, found->claim);
      continue;
    }
    if (!is_gone(record, is_whole_list)) {
      gone_since_.erase(uid);
      continue;
    }
    if (!is_unused(*node, record)) continue;
    TRY_ASSIGN(const bool is_released, store_.release_if(held));
    if (is_released) released.push_back(record.shown());
  }
  return released;
}

std::optional<CdiWatch> CdiWatch::open(const std::string& directory) {
  constexpr unsigned kEvents = IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  Fd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (!inotify.valid() || error) return std::nullopt;
  if (::inotify_add_watch(inotify.get(), directory.c_str(), kEvents) < 0) return std::nullopt;
  return CdiWatch(std::move(inotify));
}

CdiWatch::News CdiWatch::take() {
  bool is_gone = false, is_changed = false;
  alignas(inotify_event) std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (count <= 0) break;
    for (const char* at = buffer.data(); at < buffer.data() + count;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof(inotify_event) + event->len;
      const std::string_view name(event->len > 0 ? event->name : "");
      is_gone |= (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT | IN_Q_OVERFLOW)) != 0;
      is_changed |= name.ends_with(".json");
    }
  }
  return is_gone ? News::ended : is_changed ? News::files_gone : News::nothing;
}

struct ClaimUpkeep::Wakeup {
  const Fd fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  void wake() const { static_cast<void>(::eventfd_write(fd.get(), 1)); }
  void clear() const {
    eventfd_t count = 0;
    static_cast<void>(::eventfd_read(fd.get(), &count));
  }
};

ClaimUpkeep::ClaimUpkeep(RecordStore& store, ClaimSweep& sweep, Settings settings, Ports ports)
    : store_(store),
      sweep_(sweep),
      settings_(std::move(settings)),
      ports_(std::move(ports)),
      wakeup_(std::make_shared<Wakeup>()),
      writer_({"claim files", settings_.cdi_directory + " or " + settings_.claims_directory}, ports_.run_repair,
              ports_.clock) {}

void ClaimUpkeep::node_changed() {
  node_changed_ = true;
  wakeup_->wake();
}

void ClaimUpkeep::run(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [wakeup = wakeup_] { wakeup->wake(); });
  bool is_wanted = true;
  SteadyTime repair_at = ports_.clock.now();
  SteadyTime sweep_at = repair_at + kSweepEvery;
  while (!stop.stop_requested()) {
    const SteadyTime now = ports_.clock.now();
    if (is_wanted && now >= repair_at && begin_repair()) is_wanted = false;
    SteadyTime next = std::min(sweep_at, writer_.late_at().value_or(sweep_at));
    if (is_wanted && !writer_.is_running()) next = std::min(next, repair_at);
    const auto left = std::chrono::ceil<milliseconds>(next - now);
    std::array<pollfd, 2> fds = {{{wakeup_->fd.get(), POLLIN, 0}, {watch_ ? watch_->fd() : -1, POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), static_cast<int>(std::max(left, milliseconds{0}).count()));
    if (stop.stop_requested()) return;
    wakeup_->clear();
    if (end_repair()) {
      repair_at = ports_.clock.now() + (watch_ ? kPause : kUnwatched);
      is_wanted |= !watch_;
    }
    if (take_news()) is_wanted = true;
    store_.set_hanging(writer_.is_late());
    if (ports_.clock.now() < sweep_at) continue;
    is_wanted = true;
    sweep();
    sweep_at = ports_.clock.now() + kSweepEvery;
  }
}

bool ClaimUpkeep::await_first() {
  const SteadyTime until = std::chrono::steady_clock::now() + CdiWriter::kPatience;
  const MutexLock lock(mutex_);
  while (!has_repaired_ && first_ended_.wait_until(mutex_, until) == std::cv_status::no_timeout) {
  }
  return has_repaired_;
}

// The watch begins before the repair, so that nothing that goes meanwhile is missed.
bool ClaimUpkeep::begin_repair() {
  if (writer_.is_running()) return false;
  new_watch_ = watch_ ? nullptr : std::make_shared<std::optional<CdiWatch>>();
  return writer_.begin(
      [&store = store_, watch = new_watch_, open = ports_.watch, directory = settings_.cdi_directory] {
        if (watch) *watch = open(directory);
        const auto repaired = store.repair();
        return CdiWriter::Written{.error = repaired ? "" : repaired.error().message};
      },
      [wakeup = wakeup_] { wakeup->wake(); });
}

bool ClaimUpkeep::end_repair() {
  if (!writer_.take()) return false;
  if (const auto opened = std::exchange(new_watch_, nullptr); opened && *opened) watch_ = *std::move(*opened);
  ports_.changed();
  const MutexLock lock(mutex_);
  has_repaired_ = true;
  first_ended_.notify_all();
  return true;
}

// Whether something may have to be repaired.
bool ClaimUpkeep::take_news() {
  const bool has_changed = node_changed_.exchange(false);
  const CdiWatch::News news = watch_ ? watch_->take() : CdiWatch::News::nothing;
  if (news == CdiWatch::News::ended) watch_.reset();
  return has_changed || news != CdiWatch::News::nothing;
}

// One at a time: while one hangs in a broken driver, no other begins.
void ClaimUpkeep::sweep() {
  if (sweeping_->exchange(true)) return;
  ports_.run_sweep([&sweep = sweep_, changed = ports_.changed, sweeping = sweeping_] {
    const auto released = sweep.sweep();
    if (!released) spdlog::debug("orphaned claims not checked: {}", released.error().message);
    for (const std::string& claim : released.value_or(std::vector<std::string>{})) {
      spdlog::warn("released orphaned claim claim={}", claim);
    }
    if (released && !released->empty()) changed();
    sweeping->store(false);
  });
}

}  // namespace neuron::plugin::dra
