#include "plugin/dra/claim/hardware.h"

#include <algorithm>
#include <iterator>

namespace neuron::plugin::dra {
namespace {

template <typename T>
std::vector<T> merged(const std::vector<T>& one, const std::vector<T>& other) {
  std::vector<T> both;
  std::set_union(one.begin(), one.end(), other.begin(), other.end(), std::back_inserter(both));
  return both;
}

// The first of both; nullptr: none.
template <typename T>
const T* first_common(const std::vector<T>& one, const std::vector<T>& other) {
  for (const T& each : one) {
    if (std::binary_search(other.begin(), other.end(), each)) return &each;
  }
  return nullptr;
}

std::string name_of(int device) {
  return "neuron" + std::to_string(device);
}

}  // namespace

void Hardware::add(const Hardware& more) {
  for (const HeldDevice& held : more.devices) {
    const auto at = std::lower_bound(devices.begin(), devices.end(), held.device,
                                     [](const HeldDevice& each, int device) { return each.device < device; });
    if (at == devices.end() || at->device != held.device) {
      devices.insert(at, held);
    } else if (at->places.empty() || held.places.empty()) {
      at->places.clear();
    } else {
      at->places = merged(at->places, held.places);
    }
  }
  efas = merged(efas, more.efas);
}

std::optional<std::string> overlap(const Hardware& one, const Hardware& other) {
  for (const HeldDevice& held : one.devices) {
    for (const HeldDevice& theirs : other.devices) {
      if (held.device != theirs.device) continue;
      if (held.places.empty() || theirs.places.empty()) return name_of(held.device);
      if (const int* place = first_common(held.places, theirs.places)) {
        return "core position " + std::to_string(*place) + " of " + name_of(held.device);
      }
    }
  }
  if (const std::string* efa = first_common(one.efas, other.efas)) return "interface " + *efa;
  return std::nullopt;
}

}  // namespace neuron::plugin::dra
