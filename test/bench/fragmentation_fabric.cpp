#include "test/bench/fragmentation_fabric.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace neuron::bench {
namespace {

constexpr char kFree = 0;
constexpr char kUsed = 1;

std::size_t at(int id) {
  return static_cast<std::size_t>(id);
}

bool contains(const std::vector<int>& ids, int id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

Fabric::Fabric(allocator::NodeTopology topology) : topology_(std::move(topology)) {
  const int count = devices();
  constexpr int kFar = 99;
  hops_.assign(at(count * count), kFar);
  for (int from = 0; from < count; ++from) {
    std::vector<int> reached{from};
    hops_[at(from * count + from)] = 0;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const int here = reached[i];
      for (const int next : topology_.devices[at(here)].neighbours) {
        if (hops(from, next) != kFar) continue;
        hops_[at(from * count + next)] = hops(from, here) + 1;
        reached.push_back(next);
      }
    }
  }
}

bool Fabric::connected(const std::vector<int>& devices) const {
  std::vector<int> reached{devices.front()};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const int next : devices) {
      if (hops(reached[i], next) == 1 && !contains(reached, next)) reached.push_back(next);
    }
  }
  return reached.size() == devices.size();
}

// A ring's run may pass its end: then it is the rest that has no gap.
bool Fabric::one_run(const std::vector<int>& devices) const {
  int gaps = 0;
  for (std::size_t i = 1; i < devices.size(); ++i) {
    if (devices[i] != devices[i - 1] + 1) ++gaps;
  }
  const bool passes_end = topology_.ring && devices.front() == 0 && devices.back() == this->devices() - 1;
  return gaps == 0 || (gaps == 1 && passes_end);
}

bool Fabric::one_range(const std::vector<int>& cores) const {
  std::vector<int> seen = devices_of(Unit::core, cores);
  std::vector<int> as_counted;
  for (const int core : cores) {
    const auto device = std::lower_bound(seen.begin(), seen.end(), core / per_device()) - seen.begin();
    as_counted.push_back(static_cast<int>(device) * per_device() + core % per_device());
  }
  return as_counted.back() - as_counted.front() + 1 == static_cast<int>(cores.size());
}

bool Fabric::valid(Unit unit, const std::vector<int>& ids) const {
  if (ids.empty()) return false;
  if (unit == Unit::core) return one_range(ids);
  const auto size = static_cast<int>(ids.size());
  if (!topology_.groups_of_torus) return one_run(ids);
  const bool fixed_size = size == 1 || size == 4 || size == 8 || size == 16;
  return fixed_size ? ids.front() % size == 0 && ids.back() - ids.front() == size - 1 : connected(ids);
}

std::vector<int> Fabric::devices_of(Unit unit, const std::vector<int>& ids) const {
  if (unit == Unit::device) return ids;
  std::vector<int> devices;
  for (const int core : ids) {
    if (!contains(devices, core / per_device())) devices.push_back(core / per_device());
  }
  return devices;
}

std::optional<double> Fabric::mean_hops(const std::vector<int>& devices) const {
  if (devices.size() < 2) return std::nullopt;
  int sum = 0;
  int pairs = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (std::size_t j = i + 1; j < devices.size(); ++j) {
      sum += hops(devices[i], devices[j]);
      ++pairs;
    }
  }
  return static_cast<double>(sum) / pairs;
}

bool Fabric::nics_aligned(const std::vector<int>& devices, const std::vector<int>& efas) const {
  const auto near = [&](int device, int efa) { return contains(topology_.devices[at(device)].near_efas, efa); };
  const bool every_efa = std::all_of(efas.begin(), efas.end(), [&](int efa) {
    return std::any_of(devices.begin(), devices.end(), [&](int device) { return near(device, efa); });
  });
  return every_efa && std::all_of(devices.begin(), devices.end(), [&](int device) {
           return std::any_of(efas.begin(), efas.end(), [&](int efa) { return near(device, efa); });
         });
}

Occupancy::Occupancy(const Fabric& fabric)
    : fabric_(&fabric),
      core_used_(at(fabric.devices() * fabric.per_device())),
      efa_used_(fabric.topology().efas.size()) {}

std::vector<int> Occupancy::free_devices() const {
  std::vector<int> free;
  for (int device = 0; device < fabric_->devices(); ++device) {
    const auto first = core_used_.begin() + device * fabric_->per_device();
    if (std::all_of(first, first + fabric_->per_device(), [](char used) { return used == kFree; })) {
      free.push_back(device);
    }
  }
  return free;
}

std::vector<int> Occupancy::free_cores() const {
  std::vector<int> free;
  for (std::size_t core = 0; core < core_used_.size(); ++core) {
    if (core_used_[core] == kFree) free.push_back(static_cast<int>(core));
  }
  return free;
}

std::vector<int> Occupancy::free_efas() const {
  std::vector<int> free;
  for (std::size_t efa = 0; efa < efa_used_.size(); ++efa) {
    if (efa_used_[efa] == 0) free.push_back(static_cast<int>(efa));
  }
  return free;
}

std::vector<int> Occupancy::free_units(Unit unit) const {
  return unit == Unit::device ? free_devices() : free_cores();
}

bool Occupancy::enough(const Request& request) const {
  return static_cast<int>(free_units(request.unit).size()) >= request.size &&
         static_cast<int>(free_efas().size()) >= request.efas;
}

bool Occupancy::any_valid(const Request& request) const {
  if (!enough(request)) return false;
  if (request.unit == Unit::core) return any_valid_cores(request.size);
  return any_valid_devices(request.size, [](const auto&) { return true; });
}

bool Occupancy::any_aligned(const Request& request) const {
  const std::vector<int> free = free_efas();
  return any_valid_devices(request.size, [&](const std::vector<int>& devices) {
    std::vector<int> nearest;
    for (const int efa : free) {
      const auto& near_it = fabric_->topology().efas[at(efa)].near_devices;
      const auto chosen = [&](int device) { return contains(devices, device); };
      if (std::any_of(near_it.begin(), near_it.end(), chosen)) nearest.push_back(efa);
    }
    return static_cast<int>(nearest.size()) == request.efas && fabric_->nics_aligned(devices, nearest);
  });
}

bool Occupancy::any_valid_devices(int size, const std::function<bool(const std::vector<int>&)>& accepts) const {
  const std::vector<int> free = free_devices();
  for (unsigned mask = 0; mask < 1U << free.size(); ++mask) {
    if (std::popcount(mask) != size) continue;
    std::vector<int> ids;
    for (std::size_t i = 0; i < free.size(); ++i) {
      if ((mask >> i & 1U) != 0) ids.push_back(free[i]);
    }
    if (fabric_->valid(Unit::device, ids) && accepts(ids)) return true;
  }
  return false;
}

// A range ends on one device; it begins there too, or on an earlier device whose tail is free, with whole free devices
// between.
bool Occupancy::any_valid_cores(int size) const {
  const int per_device = fabric_->per_device();
  const auto free = [&](int core) { return core_used_[at(core)] == kFree; };
  const std::vector<int> whole = free_devices();
  for (int start = 0; start < fabric_->devices() * per_device; ++start) {
    int tail = 0;
    while (tail < per_device - start % per_device && free(start + tail)) ++tail;
    if (tail >= size) return true;
    if (tail < per_device - start % per_device) continue;
    const int first = start / per_device;
    for (int last = first + 1; last < fabric_->devices(); ++last) {
      int head = 0;
      while (head < per_device && free(last * per_device + head)) ++head;
      const auto between = std::count_if(whole.begin(), whole.end(), [&](int d) { return d > first && d < last; });
      for (int middle = 0; middle <= static_cast<int>(between); ++middle) {
        const int rest = size - tail - middle * per_device;
        if (rest >= 1 && rest <= head) return true;
      }
    }
  }
  return false;
}

void Occupancy::take(Unit unit, const Placement& placement) {
  const int per_device = fabric_->per_device();
  for (const int id : placement.ids) {
    if (unit == Unit::core) {
      core_used_[at(id)] = kUsed;
    } else {
      std::fill_n(core_used_.begin() + id * per_device, per_device, kUsed);
    }
  }
  for (const int efa : placement.efas) efa_used_[at(efa)] = 1;
}

void Occupancy::release(Unit unit, const Placement& placement) {
  const int per_device = fabric_->per_device();
  for (const int id : placement.ids) {
    if (unit == Unit::core) {
      core_used_[at(id)] = kFree;
    } else {
      std::fill_n(core_used_.begin() + id * per_device, per_device, kFree);
    }
  }
  for (const int efa : placement.efas) efa_used_[at(efa)] = 0;
}

}  // namespace neuron::bench
