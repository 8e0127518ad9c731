#include "plugin/dra/slices/slice_sync.h"

#include <algorithm>
#include <limits>
#include <map>

#include "agent/base/encoding.h"

namespace neuron::plugin::dra {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::size_t kIndexDigits = 5, kSaltDigits = 8;

// Of a slice's name, behind its number and its salt.
std::string name_end(const PoolIdentity& identity) {
  constexpr std::size_t kMaxBytes = 253, kDigestDigits = 16;
  const std::string rest = identity.driver + "-" + identity.node.name;
  if (kIndexDigits + kSaltDigits + 1 + rest.size() <= kMaxBytes) return "-" + rest;
  return "-x" + sha256_hex(rest).substr(0, kDigestDigits);
}

// Taints that are stored already, to find the time at which they were added.
class KnownTaints {
 public:
  explicit KnownTaints(const std::vector<Slice>& stored) {
    for (const Slice& slice : stored) {
      for (const SliceDevice& device : slice.content.devices) {
        for (const SliceTaint& taint : device.taints) add(device.name, taint);
      }
    }
  }
  void fill(SliceContent& content) const {
    for (SliceDevice& device : content.devices) {
      const auto known = taints_.find(device.name);
      if (known == taints_.end()) continue;
      for (SliceTaint& taint : device.taints) {
        const auto same = std::find_if(known->second.begin(), known->second.end(),
                                       [&](const SliceTaint* one) { return one->taint == taint.taint; });
        if (same != known->second.end()) taint.time_added = (*same)->time_added;
      }
    }
  }

 private:
  void add(const std::string& device, const SliceTaint& taint) {
    if (!taint.time_added.empty()) taints_[device].push_back(&taint);
  }
  std::map<std::string, std::vector<const SliceTaint*>> taints_;
};

Slice slice_at(std::size_t index, const SliceContent& content, const PoolIdentity& identity, std::size_t count) {
  Slice slice;
  slice.name = slice_name(index, identity);
  slice.owner = identity.node;
  slice.driver = identity.driver;
  slice.node = identity.node.name;
  slice.pool = identity.pool;
  slice.slice_count = static_cast<std::int64_t>(count);
  slice.content = content;
  return slice;
}

bool says_the_same(const Slice& stored, const Slice& wanted) {
  return stored.is_ours && stored.owner == wanted.owner && stored.driver == wanted.driver &&
         stored.node == wanted.node && stored.pool == wanted.pool && stored.generation == wanted.generation &&
         stored.slice_count == wanted.slice_count && is_same(stored.content, wanted.content);
}

std::int64_t highest_generation(const std::vector<Slice>& stored, const std::string& pool) {
  std::int64_t highest = 0;
  for (const Slice& slice : stored) {
    if (slice.pool == pool) highest = std::max(highest, slice.generation);
  }
  return highest;
}

}  // namespace

SyncPlan plan_sync(const std::vector<Slice>& stored, const std::vector<SliceContent>& wanted,
                   const PoolIdentity& identity) {
  SyncPlan plan;
  std::int64_t generation = highest_generation(stored, identity.pool);
  std::map<std::string, const Slice*> by_name;
  for (const Slice& slice : stored) by_name[slice.name] = &slice;
  const KnownTaints taints(stored);
  bool rises = false;
  std::size_t changed = 0;
  std::vector<std::pair<Slice, const Slice*>> places;  // wanted, and the stored one that is to become it
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Slice slice = slice_at(i, wanted[i], identity, wanted.size());
    slice.generation = generation;
    const auto found = by_name.find(slice.name);
    const Slice* place = found != by_name.end() ? found->second : nullptr;
    // Driver, node and pool of an object cannot change.
    const bool usable =
        place != nullptr && place->driver == slice.driver && place->node == slice.node && place->pool == slice.pool;
    if (usable) by_name.erase(found);
    if (!usable) rises = true;
    if (usable && !says_the_same(*place, slice)) ++changed;
    places.emplace_back(std::move(slice), usable ? place : nullptr);
  }
  if (changed > 1) rises = true;
  // A generation may begin anew when all slices are written.
  if (rises) generation = generation < std::numeric_limits<std::int64_t>::max() ? generation + 1 : 1;
  for (const auto& [name, slice] : by_name) plan.deletes.push_back(*slice);
  for (auto& [slice, place] : places) {
    slice.generation = generation;
    if (place != nullptr && says_the_same(*place, slice)) continue;
    taints.fill(slice.content);
    if (place != nullptr) {
      slice.uid = place->uid;
      slice.resource_version = place->resource_version;
    }
    (place != nullptr ? plan.updates : plan.creates).push_back(std::move(slice));
  }
  return plan;
}

std::string slice_name(std::size_t index, const PoolIdentity& identity) {
  std::string number(kIndexDigits, '0');
  for (auto digit = number.rbegin(); digit != number.rend(); ++digit, index /= 16) *digit = kDigits[index % 16];
  return number + identity.salt + name_end(identity);
}

std::string salt_in_use(const std::vector<Slice>& stored, const PoolIdentity& identity) {
  const std::string end = name_end(identity);
  std::string least;
  for (const Slice& slice : stored) {
    constexpr std::size_t kSalted = kIndexDigits + kSaltDigits;
    const bool is_salted = slice.pool == identity.pool && slice.name.find_first_not_of(kDigits) == kSalted &&
                           slice.name.substr(kSalted) == end;
    if (!is_salted) continue;
    std::string salt = slice.name.substr(kIndexDigits, kSaltDigits);
    if (least.empty() || salt < least) least = std::move(salt);
  }
  return least;
}

std::vector<Slice> whole_slices(const std::vector<SliceContent>& wanted, const PoolIdentity& identity) {
  return plan_sync({}, wanted, identity).creates;
}

bool is_same(const SliceContent& a, const SliceContent& b) {
  const auto same_device = [](const SliceDevice& one, const SliceDevice& other) {
    const auto same_taint = [](const SliceTaint& x, const SliceTaint& y) { return x.taint == y.taint; };
    return one.name == other.name && one.attributes == other.attributes && one.capacity == other.capacity &&
           one.consumes == other.consumes &&
           std::equal(one.taints.begin(), one.taints.end(), other.taints.begin(), other.taints.end(), same_taint);
  };
  return a.counter_sets == b.counter_sets &&
         std::equal(a.devices.begin(), a.devices.end(), b.devices.begin(), b.devices.end(), same_device);
}

}  // namespace neuron::plugin::dra
