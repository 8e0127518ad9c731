#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plugin/dra/slices/pool.h"

// ResourceSlices of resource.k8s.io/v1, as far as we write them: plain values (docs/reference/dra.md#resource-slices).
namespace neuron::plugin::dra {

using Counters = std::map<std::string, std::int64_t>;

struct SliceTaint {
  Taint taint;
  std::string time_added{};  // RFC 3339, set by the server; "" in what is wanted
};

struct SliceDevice {
  std::string name;
  Attributes attributes{};
  std::map<std::string, std::int64_t> capacity{};
  std::map<std::string, Counters> consumes{};  // by counter set
  std::vector<SliceTaint> taints{};
};

// What one slice says: counter sets or devices, or both where a server wants it so.
struct SliceContent {
  std::map<std::string, Counters> counter_sets{};
  std::vector<SliceDevice> devices{};  // in the order in which the scheduler tries them
};

// Whether a scheduler would see the same; not by when a taint was added.
[[nodiscard]] bool is_same(const SliceContent& a, const SliceContent& b);

// The Node object that owns the slices: with it they go.
struct OwnerNode {
  std::string name;
  std::string uid;
  friend bool operator==(const OwnerNode&, const OwnerNode&) = default;
};

// An object. What the server gives is "" or 0 in one that is to be created.
struct Slice {
  std::string name;
  std::string uid{};
  std::string resource_version{};
  OwnerNode owner{};  // of owner references the one Node that controls it, else ""
  std::string driver{};
  std::string node{};
  std::string pool{};
  std::int64_t generation = 0;  // of the pool
  std::int64_t slice_count = 0;
  SliceContent content{};
  bool is_ours = true;  // false: it has more or other things than we write, and content is not all of it
};

}  // namespace neuron::plugin::dra
