#pragma once

#include <string>
#include <vector>

#include "plugin/dra/slices/slice.h"

// What is stored and what is wanted, to the writes between them (docs/reference/dra.md#resource-slices). Pure.
namespace neuron::plugin::dra {

struct PoolIdentity {
  std::string driver;
  std::string pool;  // name; the node's by default
  OwnerNode node;
  std::string salt{};  // of slices' names: "", or 8 hexadecimal digits where a foreign object has one of them
};

// In this order: deletes, updates, creates.
struct SyncPlan {
  std::vector<Slice> deletes;  // name, uid and resource_version count
  std::vector<Slice> updates;  // whole, with the stored uid and resource_version
  std::vector<Slice> creates;
  [[nodiscard]] bool empty() const { return deletes.empty() && updates.empty() && creates.empty(); }
};

// `stored`: all slices of this driver and node. `wanted`: those that there should be, in order; none: all go.
// The pool's generation stays when nothing is new and one slice at most differs, else it rises and every slice is
// written. Slices that have no place in `wanted` go: under another name, of another pool.
// Taints keep the time at which they were added.
[[nodiscard]] SyncPlan plan_sync(const std::vector<Slice>& stored, const std::vector<SliceContent>& wanted,
                                 const PoolIdentity& identity);

// "00003-neuron.aws.com-node1", with a salt "000037f0c1d22-neuron.aws.com-node1": sorts as the slices do, and is the
// same for every instance of the driver, so that two of them do not make two of one slice. With a digest instead of its
// end where it could exceed 253 bytes. The admission policy of manifests/overlays/dra takes these names and no others.
[[nodiscard]] std::string slice_name(std::size_t index, const PoolIdentity& identity);

// The salt that stored slices of the pool have in their names, so that every instance goes on with it; the least of
// several, "" where none has one.
[[nodiscard]] std::string salt_in_use(const std::vector<Slice>& stored, const PoolIdentity& identity);

// What is wanted as whole objects, as if nothing were stored: for people, and for clusters that are filled by hand.
[[nodiscard]] std::vector<Slice> whole_slices(const std::vector<SliceContent>& wanted, const PoolIdentity& identity);

}  // namespace neuron::plugin::dra
