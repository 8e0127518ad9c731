#include "plugin/dra/claim/claim_shares.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <utility>

#include "agent/allocator/shares.h"
#include "agent/core/hardware.h"
#include "agent/core/logical_cores.h"
#include "plugin/dra/claim/claim_config.h"
#include "plugin/dra/claim/claim_grant.h"

namespace neuron::plugin::dra {
namespace {

using allocator::CoreMask;
using model::Resource;

constexpr CoreMask bit(int core) {
  return CoreMask{1} << static_cast<unsigned>(core);
}

// A device of which the claim has shares.
struct SharedDevice {
  int index = 0;
  int width = 0;                                   // places of a logical core: the node's LNC
  std::vector<int> ids;                            // global, of its logical cores
  std::vector<const AllocationResult*> results{};  // shares that are to be chosen
  int granule = 1;
  std::string unhealthy{};  // of a core that is: the sentence
  CoreMask healthy = 0;
  CoreMask taken = 0;
};

Hardware hardware_of_cores(const SharedDevice& device, CoreMask cores) {
  HeldDevice held{device.index, {}};
  for (int core = 0; core < static_cast<int>(device.ids.size()); ++core) {
    for (int i = 0; (cores & bit(core)) != 0 && i < device.width; ++i) held.places.push_back(core * device.width + i);
  }
  return {{std::move(held)}, {}};
}

// The cores of the device of which the hardware has some place.
CoreMask cores_in(const SharedDevice& device, const Hardware& hardware) {
  CoreMask cores = 0;
  for (int core = 0; core < static_cast<int>(device.ids.size()); ++core) {
    if (overlap(hardware_of_cores(device, bit(core)), hardware)) cores |= bit(core);
  }
  return cores;
}

Result<SharedDevice> find_device(const grant::NodeUnits& node, const AllocationResult& result) {
  TRY_ASSIGN(const Hardware hardware, hardware_of(node, result.device));
  SharedDevice device{hardware.devices.front().device, 0, {}};
  device.ids = node.cores_of(Resource::neuron, device.index);
  const auto& lnc = node.snapshot().host.lnc;
  if (device.ids.empty() || !lnc) {
    return fail(ErrorCode::unavailable, RefusalReason::not_scanned,
                "the number of cores of neuron" + std::to_string(device.index) + " is unknown; retried automatically");
  }
  device.width = lnc->value;
  return device;
}

bool is_shareable(const AllocationResult& result) {
  const auto name = core::parse_pool_name(result.device);
  return result.cores && !result.admin_access && name && std::holds_alternative<core::DeviceName>(*name);
}

// A device alone had as many cores as its LNC then gave it, less unhealthy ones: with half of today's or less it was
// twice today's.
int cores_now(const SharedDevice& device, const AllocationResult& result, const model::HostScan& host) {
  const int all = static_cast<int>(device.ids.size());
  const int most = result.is_alone ? core::possible_lncs(host).back() / device.width : 1;
  int cores = *result.cores;
  for (int factor = 1; factor * 2 <= most && cores * 2 <= all; factor *= 2) cores *= 2;
  return cores;
}

// Cores that are not unhealthy by either scan, or whose taint every result tolerates.
void find_healthy(SharedDevice& device, const ShareFacts& facts) {
  const auto is_usable = [&](const model::Health& health) {
    if (health.state != model::HealthState::unhealthy) return true;
    const bool is_tolerated = !facts.taint.effect.empty() && std::ranges::all_of(device.results, [&](const auto* one) {
      return tolerates(one->tolerations, facts.taint.key, health.reason, facts.taint.effect);
    });
    if (!is_tolerated && device.unhealthy.empty()) {
      device.unhealthy = health.sentence.empty() ? health.reason : health.sentence;
    }
    return is_tolerated;
  };
  for (std::size_t core = 0; core < device.ids.size(); ++core) {
    bool is_healthy = is_usable(facts.node.health_of(Resource::neuroncore, device.ids[core]));
    if (facts.seen.device(device.index) != nullptr) {
      const std::vector<int> seen = facts.seen.cores_of(Resource::neuron, device.index);
      is_healthy =
          is_healthy && (core >= seen.size() || is_usable(facts.seen.health_of(Resource::neuroncore, seen[core])));
    }
    if (is_healthy) device.healthy |= bit(static_cast<int>(core));
  }
}

Error too_few(const SharedDevice& device, int cores, const ShareFacts& facts, const std::string& uid) {
  const CoreMask free = device.healthy & ~device.taken;
  std::string why = "the claim was allocated " + std::to_string(cores) + " cores of neuron" +
                    std::to_string(device.index) + ", and " + std::to_string(std::popcount(free)) +
                    " are healthy and free";
  if (!device.unhealthy.empty()) why += "; one is unhealthy: " + device.unhealthy;
  const Hardware all{{{device.index, {}}}, {}};
  auto holder = conflict(facts.holders, all);
  if (!holder) holder = conflict(facts.records, uid, all);
  if (!holder) {  // calls that run have reserved them
    holder = make_error(ErrorCode::failed_precondition, RefusalReason::held_by_claim,
                        "retried automatically. If it persists, delete the pod, so that a new one gets other cores");
  }
  if (!device.unhealthy.empty()) holder->reason = to_string(RefusalReason::unhealthy);
  holder->message = why + "; " + holder->message;
  return *std::move(holder);
}

// Of a request that says how many logical cores: as many of the node's LNC, as a device plugin's pod would get.
Error more_than_all(const SharedDevice& device, int cores) {
  return make_error(ErrorCode::failed_precondition, RefusalReason::bad_allocation,
                    std::to_string(cores) + " cores of neuron" + std::to_string(device.index) +
                        " were allocated, and by the node's LNC " + std::to_string(device.width) + " it has " +
                        std::to_string(device.ids.size()) +
                        "; the LNC was changed since: delete the pod, so that a new one is allocated by it");
}

// The lowest `count` cores of `cores`, which loses them.
CoreMask take_lowest(CoreMask& cores, int count) {
  CoreMask taken = 0;
  for (; count > 0 && cores != 0; --count) {
    taken |= cores & (~cores + 1);
    cores &= cores - 1;
  }
  return taken;
}

class Chooser {
 public:
  Chooser(const ResourceClaim& claim, const ShareFacts& facts, const ChosenShares& kept)
      : claim_(claim), facts_(facts), kept_(kept), results_(claim.results), beside_(facts.beside) {}

  Result<ChosenShares> choose() {
    for (AllocationResult& result : results_) TRY(add(result));
    std::vector<allocator::ShareWish> wishes;
    for (auto& [index, device] : devices_) {
      TRY_ASSIGN(const allocator::ShareWish wish, wish_of(device));
      wishes.push_back(wish);
    }
    if (wishes.empty()) return std::move(chosen_);
    std::vector<int> others;
    for (const HeldDevice& held : beside_.devices) {
      if (!devices_.contains(held.device)) others.push_back(held.device);
    }
    const auto answers = allocator::choose_shares(facts_.node.topology().cores_per_device, wishes, others);
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      const SharedDevice& device = devices_.at(wishes[i].device);
      if (!answers[i]) return fail(too_few(device, wishes[i].cores, facts_, claim_.uid));
      CoreMask cores = *answers[i];
      for (const AllocationResult* result : device.results) {
        chosen_[share_key(*result)] = hardware_of_cores(device, take_lowest(cores, *result->cores));
      }
    }
    return std::move(chosen_);
  }

 private:
  Result<void> add(AllocationResult& result) {
    if (result.admin_access) return {};
    if (!is_shareable(result)) {
      if (const auto whole = hardware_of(facts_.node, result.device)) beside_.add(*whole);
      return {};
    }
    TRY_ASSIGN(SharedDevice found, find_device(facts_.node, result));
    if (*result.cores < 1) {
      const auto [problem, fix] = no_cores(result.request);
      return fail(ErrorCode::invalid_argument, RefusalReason::bad_config, problem + "; " + fix);
    }
    result.cores = cores_now(found, result, facts_.node.snapshot().host);
    const bool is_prepared = facts_.records.contains(claim_.uid);
    if (*result.cores > static_cast<int>(found.ids.size()) && !result.is_alone && !is_prepared) {
      return fail(more_than_all(found, *result.cores));
    }
    if (*result.cores >= static_cast<int>(found.ids.size())) {
      beside_.add({{{found.index, {}}}, {}});
      return {};
    }
    const auto kept = kept_.find(share_key(result));
    const bool is_kept = kept != kept_.end() && !conflict(facts_.records, claim_.uid, kept->second);
    if (const auto known = is_kept ? std::optional(kept->second) : recorded(found, result)) {
      chosen_.emplace(share_key(result), *known);
      beside_.add(*known);
      return {};
    }
    TRY_ASSIGN(const RequestConfig config, config_for(claim_.configs, result.full_request()));
    SharedDevice& device = devices_.try_emplace(found.index, std::move(found)).first->second;
    device.results.push_back(&result);
    if (config.lnc && *config.lnc > device.width && *config.lnc % device.width == 0) {
      device.granule = std::max(device.granule, *config.lnc / device.width);
    }
    return {};
  }

  // Of the claim's own record. One that was rebuilt from the claim's CDI file has no ids of shares.
  std::optional<Hardware> recorded(const SharedDevice& device, const AllocationResult& result) {
    const auto record = facts_.records.find(claim_.uid);
    if (record == facts_.records.end()) return std::nullopt;
    const std::vector<PreparedDevice>& devices = record->second->devices;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const auto name = core::parse_pool_name(devices[i].share);
      const auto* share = name ? std::get_if<core::ShareName>(&*name) : nullptr;
      if (share == nullptr || share->device != device.index) continue;
      const bool is_it = devices[i].share_id ? devices[i].share_id == result.share_id
                                             : static_cast<int>(share->places.size()) == *result.cores * device.width;
      if (is_it && recorded_.insert(i).second) return Hardware{{{share->device, share->places}}, {}};
    }
    return std::nullopt;
  }

  Result<allocator::ShareWish> wish_of(SharedDevice& device) {
    find_healthy(device, facts_);
    device.taken = cores_in(device, facts_.reserved) | cores_in(device, beside_);
    for (const auto& [uid, record] : facts_.records) {
      if (uid != claim_.uid) device.taken |= cores_in(device, record->held());
    }
    for (const PluginHolder& holder : facts_.holders) device.taken |= cores_in(device, holder.hardware);
    allocator::ShareWish wish{device.index, 0, device.healthy & ~device.taken, cores_in(device, beside_), 1};
    for (const AllocationResult* result : device.results) wish.cores += *result->cores;
    if (wish.cores % device.granule == 0) wish.granule = device.granule;
    return wish;
  }

  const ResourceClaim& claim_;
  const ShareFacts& facts_;
  const ChosenShares& kept_;
  std::vector<AllocationResult> results_;  // of the claim, with cores of today's LNC
  std::map<int, SharedDevice> devices_;    // by index
  Hardware beside_;                        // that the pod has, and the claim itself so far
  std::set<std::size_t> recorded_;         // places in the record's devices that are taken
  ChosenShares chosen_;
};

}  // namespace

bool lost_shares(const ClaimPlan& plan, const std::string& uid, const ClaimRecords& records) {
  if (std::ranges::all_of(plan.devices, [](const PlannedDevice& device) { return device.share.empty(); })) return false;
  const Hardware held = plan.held();
  const auto own = records.find(uid);
  return (own != records.end() && own->second->held() != held) || conflict(records, uid, held);
}

Result<ChosenShares> choose_shares(const ResourceClaim& claim, const ShareFacts& facts, const ChosenShares& kept) {
  return Chooser(claim, facts, kept).choose();
}

Result<ChosenShares> ShareReservations::reserve(std::uint64_t call, const std::string& uid, const Choose& choose) {
  const MutexLock lock(mutex_);
  std::erase_if(reservations_, [&](const Reservation& one) { return one.call == call && one.uid == uid; });
  Hardware reserved;
  ChosenShares kept;
  for (const Reservation& one : reservations_) {
    for (const auto& [key, hardware] : one.chosen) {
      if (one.uid == uid) {
        kept.emplace(key, hardware);
      } else {
        reserved.add(hardware);
      }
    }
  }
  TRY_ASSIGN(ChosenShares chosen, choose(reserved, kept));
  if (!chosen.empty()) reservations_.push_back({call, uid, chosen});
  return chosen;
}

void ShareReservations::end(std::uint64_t call) {
  const MutexLock lock(mutex_);
  std::erase_if(reservations_, [&](const Reservation& one) { return one.call == call; });
}

}  // namespace neuron::plugin::dra
