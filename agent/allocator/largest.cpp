#include "agent/allocator/largest.h"

#include <algorithm>
#include <initializer_list>

namespace neuron::allocator {
namespace {

using Choose = Choice (*)(const NodeTopology&, const ChooseRequest&);
using Explain = Reason (*)(const NodeTopology&, const ChooseRequest&, const std::vector<int>&);

// Whether the choice of so many has one of these shapes. Asked of the ids, as a choice of all there is does not say.
bool fits(const NodeTopology& topology, const std::vector<int>& free, int size, Choose choose, Explain explain,
          std::initializer_list<Reason::Kind> shapes) {
  ChooseRequest request;
  request.available = free;
  request.size = size;
  const Reason reason = explain(topology, request, choose(topology, request).ids);
  return std::find(shapes.begin(), shapes.end(), reason.kind) != shapes.end();
}

// The largest size that fits, where each smaller one fits too; `least` does.
template <typename Fits>
int largest(int least, int most, const Fits& size_fits) {
  while (least < most) {
    const int middle = least + (most - least + 1) / 2;
    if (size_fits(middle)) {
      least = middle;
    } else {
      most = middle - 1;
    }
  }
  return least;
}

}  // namespace

int largest_of_devices(const NodeTopology& topology, const std::vector<int>& free) {
  const int count = static_cast<int>(free.size());
  const auto size_fits = [&](int size) {
    return fits(topology, free, size, choose_devices, explain_devices,
                {Reason::Kind::aligned_group, Reason::Kind::run});
  };
  if (count <= 1) return count;
  if (topology.groups_of_torus) {
    for (const int size : {16, 8, 4}) {
      if (size <= count && size_fits(size)) return size;
    }
    return 1;
  }
  if (!topology.ring && !topology.line) return count;
  return largest(1, count, size_fits);
}

int largest_of_cores(const NodeTopology& topology, const std::vector<int>& free) {
  const int count = static_cast<int>(free.size());
  if (count <= 1 || topology.cores_per_device < 1) return std::min(count, 1);
  return largest(1, count, [&](int size) {
    return fits(topology, free, size, choose_cores, explain_cores, {Reason::Kind::core_range});
  });
}

}  // namespace neuron::allocator
