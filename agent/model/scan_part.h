#pragma once

#include <compare>
#include <functional>
#include <string>

#include "agent/model/device.h"

namespace neuron::model {

// A part of a scan that may hang by itself, so that it can be left out and the rest be read.
struct ScanPart {
  enum class Kind {
    host,         // DMI, driver versions, LNC file, kernel log
    pci,          // sys/bus/pci/devices: the list, vendor and device of each
    topology,     // hwloc
    devices,      // the list of sys/class/neuron_device
    device,       // sys/class/neuron_device/neuron<index>: identity, health
    memory,       // the same, neuron_core<M>/stats/memory_usage: shown only, no verdict rests on it
    driver,       // queries of dev/neuron<index>, and the PCI function that it names
    efa_classes,  // the lists of sys/class/infiniband and infiniband_verbs
    verbs,        // sys/class/infiniband_verbs/uverbs<index>
    efa,          // sys/bus/pci/devices/<bdf>
  };
  Kind kind = Kind::host;
  int index = 0;  // of device, memory, driver and verbs
  Bdf bdf{};      // of efa
  friend auto operator<=>(const ScanPart&, const ScanPart&) = default;
};

[[nodiscard]] std::string to_string(const ScanPart& part);  // "reading sys/class/neuron_device/neuron3"

// Called before each part of a scan is read, on the scanning thread; false leaves it out. The call also shows that the
// part before it has been read.
using MayRead = std::function<bool(const ScanPart&)>;

// A part that a scan left out, since an earlier read of it has not returned.
struct Unanswered {
  ScanPart part;
  std::string since;  // when that read began, UTC: "2026-01-31T23:59:59Z"
  friend bool operator==(const Unanswered&, const Unanswered&) = default;
};

}  // namespace neuron::model
