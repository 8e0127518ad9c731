// What an API server may show as ResourceSlices under our driver's name, and what a plan makes of it.

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>

#include "agent/kube/answers.h"
#include "plugin/dra/slices/publisher.h"

namespace {

using namespace neuron::plugin::dra;

void require(bool holds) {
  if (!holds) std::abort();
}

// A slice is written as it was read.
void check_slice(const Slice& slice) {
  require(!slice.name.empty() && is_same(slice, slice));
  require(generation_of(slice) >= 0);
  const auto again = parse_slice(slice_text(slice));
  if (again) require(is_same(*again, slice) && again->name == slice.name);
}

// Whatever is stored, one plan makes it what is wanted.
void check_plan(const std::vector<Slice>& stored) {
  const PoolIdentity identity{"neuron.aws.com", "n1", {"n1", "uid"}};
  PoolDevice device;
  device.name = "neuron-device-0";
  const std::vector<SliceContent> wanted = {SliceContent{{{"device-0", 2}}, {}}, SliceContent{{}, {device}}};
  std::set<std::string> names;
  for (const Slice& slice : stored) {
    if (!names.insert(slice.name).second) return;  // no server has two objects of one name
  }
  const SyncPlan plan = plan_sync(stored, wanted, identity);
  require(plan.updates.size() + plan.creates.size() <= wanted.size());
  std::vector<Slice> after = plan.creates;
  after.insert(after.end(), plan.updates.begin(), plan.updates.end());
  for (const Slice& slice : stored) {
    const auto is_it = [&](const Slice& other) { return other.name == slice.name; };
    const bool gone = std::any_of(plan.deletes.begin(), plan.deletes.end(), is_it);
    if (!gone && std::none_of(after.begin(), after.end(), is_it)) after.push_back(slice);
  }
  require(plan_sync(after, wanted, identity).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto slice = parse_slice(text)) check_slice(*slice);
  if (const auto list = parse_slices(text)) {
    require(list->objects.size() <= 512);
    for (const Slice& slice : list->objects) check_slice(slice);
    check_plan(list->objects);
  }
  if (const auto value = neuron::kube::parse_quantity(text))
    require(neuron::kube::parse_quantity(neuron::kube::quantity_text(*value)) == value);
  return 0;
}
