#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/kube/answers.h"
#include "plugin/dra/slices/slice_layout.h"

// Compares the ResourceSlices of resource.k8s.io/v1 that the server stores with those that a node should have, and
// plans the writes between them (docs/reference/dra.md#resource-slices). Pure.
namespace neuron::plugin::dra {

// A ResourceSlice, stored or wanted, as a whole: `json` is what POST and PUT send and what the server answers. uid and
// resource_version are "" in a slice that is to be created. The stored text is foreign.
using Slice = kube::ApiObject;

// The Node object that owns the slices; the garbage collector deletes them with it.
struct OwnerNode {
  std::string name;
  std::string uid;  // "" = the slices get no owner
};

struct PoolIdentity {
  std::string driver;
  std::string pool;  // name; the node's by default
  OwnerNode node;
  std::string salt{};  // of slices' names: "", or 8 hexadecimal digits where a foreign object has one of them
};

// One object, the answer to GET, POST and PUT; a dry run's has no resourceVersion. Errors: data_corrupt (not a
// ResourceSlice with a name).
[[nodiscard]] Result<Slice> parse_slice(std::string_view text);

// A page of a list. Errors: data_corrupt (no list, an object without a name or resourceVersion, more than 512 objects).
[[nodiscard]] Result<kube::ListPage> parse_slices(std::string_view text);
// As POST and PUT take it.
[[nodiscard]] std::string slice_text(const Slice& slice);

// Members of the spec: "driver", "nodeName"; "" where they are absent.
[[nodiscard]] std::string spec_text(const Slice& slice, const char* name);
// The pool's name and generation; "" and 0 where they are absent.
[[nodiscard]] std::string pool_of(const Slice& slice);
[[nodiscard]] std::int64_t generation_of(const Slice& slice);
// Whether the slice has counters, or a device that uses some; whether a device has a taint.
[[nodiscard]] bool has_counters(const Slice& slice);
[[nodiscard]] bool has_taints(const Slice& slice);

// Whether owners and spec are the same: as canonical JSON, in which quantities are numbers ("1k" is "1000") and taints
// have no time. Labels, annotations and the server's metadata do not count.
[[nodiscard]] bool is_same(const Slice& a, const Slice& b);
// The same of the counter sets alone.
[[nodiscard]] bool has_same_counters(const Slice& a, const Slice& b);

// In this order: deletes, updates, creates.
struct SyncPlan {
  std::vector<Slice> deletes;  // as they are stored
  std::vector<Slice> updates;  // with the stored uid and resource_version
  std::vector<Slice> creates;
  [[nodiscard]] bool empty() const { return deletes.empty() && updates.empty() && creates.empty(); }
};

// `stored`: all slices of this driver and node. `wanted`: the slices that the node should have, in order; none: all are
// deleted. The pool's generation stays when nothing is new and at most one slice differs; else it rises and every slice
// is written. Slices without a place in `wanted` are deleted: under another name, of another pool. Taints keep the time
// at which they were added.
[[nodiscard]] SyncPlan plan_sync(const std::vector<Slice>& stored, const std::vector<SliceContent>& wanted,
                                 const PoolIdentity& identity);

// "00003-neuron.aws.com-node1", with a salt "000037f0c1d22-neuron.aws.com-node1". The names sort as the slices do, and
// are the same for every instance of the driver, so that two instances do not create one slice twice. Where a name
// could exceed 253 bytes, a digest replaces its end. The admission policy of manifests/overlays/dra admits only these
// names.
[[nodiscard]] std::string slice_name(std::size_t index, const PoolIdentity& identity);

// The salt in the names of stored slices of the pool, so that every instance continues with it; the least of several,
// "" where no name has one.
[[nodiscard]] std::string salt_in_use(const std::vector<Slice>& stored, const PoolIdentity& identity);

// The slices that would be published if nothing were stored.
[[nodiscard]] std::vector<Slice> whole_slices(const std::vector<SliceContent>& wanted, const PoolIdentity& identity);
// The same as a v1 List as `kubectl apply -f` takes it, indented.
[[nodiscard]] std::string published_text(const Layout& layout, const PoolIdentity& identity);

// Of Kubernetes' quantities those that a 64-bit integer can hold: "8", "96Gi", "2k", "1e3", "4000m"; else nullopt.
[[nodiscard]] std::optional<std::int64_t> parse_quantity(std::string_view text);
// "96Gi" where it is a multiple of a binary unit, in the greatest such unit; else decimal digits.
[[nodiscard]] std::string quantity_text(std::int64_t value);

}  // namespace neuron::plugin::dra
