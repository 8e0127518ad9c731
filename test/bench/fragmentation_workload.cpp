#include "test/bench/fragmentation_workload.h"

#include <cmath>
#include <random>

namespace neuron::bench {
namespace {

// [0, 1), the top 53 bits.
double uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11U) * 0x1.0p-53;
}

double exponential(std::mt19937_64& random, double mean) {
  return -mean * std::log(1 - uniform(random));
}

int cores_of(const allocator::NodeTopology& topology, const Demand& demand) {
  return demand.unit == Unit::device ? demand.size * topology.cores_per_device : demand.size;
}

const Demand& draw(std::mt19937_64& random, const Mix& mix) {
  double point = uniform(random);
  for (const Demand& demand : mix.demands) {
    if (point < demand.weight) return demand;
    point -= demand.weight;
  }
  return mix.demands.back();
}

// `whole`: the devices of a node that one demand can get.
std::vector<Mix> mixes_for(int whole, int per_device) {
  const auto device = Unit::device;
  const auto core = Unit::core;
  return {{"training",
           {{device, whole, 0.05, 90},
            {device, whole / 2, 0.15, 120},
            {device, 4, 0.40, 90},
            {device, 2, 0.10, 45},
            {device, 1, 0.20, 30},
            {core, 1, 0.10, 30}}},
          {"inference",
           {{device, whole / 2, 0.02, 240},
            {device, 4, 0.13, 180},
            {device, 2, 0.20, 120},
            {device, 1, 0.35, 90},
            {core, 2, 0.10, 60},
            {core, 1, 0.20, 60}}},
          {"mixed",
           {{device, whole, 0.02, 60},
            {device, whole / 2, 0.08, 90},
            {device, 4, 0.25, 90},
            {device, 3, 0.05, 60},
            {device, 2, 0.15, 60},
            {device, 1, 0.20, 60},
            {core, per_device * 3 / 2, 0.05, 60},
            {core, 2, 0.10, 60},
            {core, 1, 0.10, 60}}}};
}

}  // namespace

std::vector<Mix> mixes_of(const allocator::NodeTopology& topology) {
  return mixes_for(topology.groups_of_torus ? 16 : 12, topology.cores_per_device);
}

std::vector<Request> make_stream(const allocator::NodeTopology& topology, const Mix& mix, double load,
                                 std::uint64_t seed) {
  const auto devices = static_cast<int>(topology.devices.size());
  const auto efas = static_cast<int>(topology.efas.size());
  double core_minutes = 0;  // of the mean request
  for (const Demand& demand : mix.demands) {
    core_minutes += demand.weight * demand.mean_minutes * cores_of(topology, demand);
  }
  const double gap = core_minutes / (load * devices * topology.cores_per_device);
  std::mt19937_64 random(seed);
  std::vector<Request> stream;
  for (double now = exponential(random, gap); now < kWarmUp + kDay; now += exponential(random, gap)) {
    const Demand& demand = draw(random, mix);
    Request request;
    request.id = static_cast<int>(stream.size());
    request.unit = demand.unit;
    request.size = demand.size;
    request.arrival = now;
    request.lifetime = exponential(random, demand.mean_minutes);
    if (demand.unit == Unit::device && demand.size * efas % devices == 0) request.efas = demand.size * efas / devices;
    request.efas_first = uniform(random) < 0.5;
    stream.push_back(request);
  }
  return stream;
}

}  // namespace neuron::bench
