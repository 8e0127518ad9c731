// Any topology (holes, self and one-way links, thousands of neighbours) and any question: a valid, repeatable answer.

#include <algorithm>
#include <cstdlib>
#include <set>
#include <span>

#include "agent/allocator/allocator.h"

namespace {

using neuron::allocator::Choice;
using neuron::allocator::ChooseRequest;
using neuron::allocator::NodeTopology;

void require(bool holds) {
  if (!holds) std::abort();
}

// Reads small numbers off the input; zeros when it is used up.
class Input {
 public:
  explicit Input(std::span<const unsigned char> bytes) : bytes_(bytes) {}
  int byte() {
    if (at_ == bytes_.size()) return 0;
    return bytes_[at_++];
  }
  // Mostly a plausible id, sometimes one far out.
  int id() {
    const int value = byte();
    if (value < 240) return value % 72;
    return value < 248 ? -value : 1'000'000'000 + value;
  }
  std::vector<int> ids(int most) {
    std::vector<int> found;
    for (int count = byte() % (most + 1); count > 0; --count) found.push_back(id());
    return found;
  }

 private:
  std::span<const unsigned char> bytes_;
  std::size_t at_ = 0;
};

NodeTopology topology_from(Input& input) {
  NodeTopology topology;
  const int flags = input.byte();
  topology.groups_of_torus = (flags & 1) != 0;
  topology.switched = (flags & 2) != 0;
  topology.ring = (flags & 4) != 0;
  topology.line = (flags & 8) != 0;
  topology.cores_per_device = (flags & 16) != 0 ? input.id() : 1 << input.byte() % 4;
  const int efas = input.byte() % 33;
  int index = 0;
  for (int count = input.byte() % 20; count > 0; --count) {
    NodeTopology::Device device{index, input.byte() % 4 - 1, input.byte() % 6 - 1, {}, {}};
    device.neighbours = input.ids(5);
    if (count == 3 && (flags & 64) != 0 && input.byte() == 7) device.neighbours.assign(65535, input.id());
    for (const int efa : input.ids(3)) {
      if (efa >= 0 && efa < efas) device.near_efas.push_back(efa);
    }
    topology.devices.push_back(std::move(device));
    index += 1 + ((flags & 32) != 0 ? input.byte() % 4 : 0);
  }
  for (int i = 0; i < efas; ++i) {
    NodeTopology::Efa efa{"efa", input.byte() % 4 - 1, input.byte() % 6 - 1, {}};
    for (const auto& device : topology.devices) {
      if (std::count(device.near_efas.begin(), device.near_efas.end(), i) > 0) efa.near_devices.push_back(device.index);
    }
    topology.efas.push_back(std::move(efa));
  }
  return topology;
}

ChooseRequest request_from(Input& input) {
  ChooseRequest request;
  request.size = input.byte() - 20;
  if (request.size > 200) request.size = 2'147'483'647;
  request.must_include = input.ids(4);
  request.prefer_devices = input.ids(4);
  request.prefer_efas = input.ids(4);
  request.avoid_devices = input.ids(6);
  request.free_devices = input.ids(20);
  request.available = input.ids(120);
  request.free_efas = input.ids(20);
  request.reluctant_devices = input.ids(6);
  request.likely_sizes = input.ids(6);
  return request;
}

void check(const ChooseRequest& request, const Choice& choice) {
  const std::set<int> available(request.available.begin(), request.available.end());
  require(static_cast<int>(choice.ids.size()) == std::clamp(request.size, 0, static_cast<int>(available.size())));
  require(std::is_sorted(choice.ids.begin(), choice.ids.end()));
  require(std::adjacent_find(choice.ids.begin(), choice.ids.end()) == choice.ids.end());
  std::size_t offered = 0;
  for (const int id : choice.ids) require(available.contains(id));
  const std::set<int> must(request.must_include.begin(), request.must_include.end());
  for (const int id : must) offered += available.contains(id) ? 1U : 0U;
  if (offered <= choice.ids.size()) {
    for (const int id : must) {
      require(!available.contains(id) || std::binary_search(choice.ids.begin(), choice.ids.end(), id));
    }
  }
  require(!choice.why.empty() && choice.why == neuron::allocator::phrase(choice.reason));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Input input({data, size});
  const NodeTopology topology = topology_from(input);
  const ChooseRequest request = request_from(input);
  for (auto* const choose :
       {&neuron::allocator::choose_devices, &neuron::allocator::choose_cores, &neuron::allocator::choose_efas}) {
    const Choice choice = choose(topology, request);
    check(request, choice);
    require(choose(topology, request).ids == choice.ids);
  }
  for (auto* const explain :
       {&neuron::allocator::explain_devices, &neuron::allocator::explain_cores, &neuron::allocator::explain_efas}) {
    require(!neuron::allocator::phrase(explain(topology, request, request.must_include)).empty());
  }
  return 0;
}
