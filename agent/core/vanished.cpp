#include "agent/core/vanished.h"

#include <algorithm>

namespace neuron::core {
namespace {

using model::EfaInterface;
using model::HostScan;
using model::NeuronDevice;
using model::Presence;

NeuronDevice as_vanished(NeuronDevice device) {
  device.presence = Presence::vanished;
  device.node_present = false;
  device.signals = {};
  device.cores.clear();
  device.processes.reset();
  device.problems.clear();
  return device;
}

EfaInterface as_vanished(EfaInterface efa) {
  efa.presence = Presence::vanished;
  efa.driver_bound = false;
  efa.node_present = false;
  efa.uverbs.reset();
  efa.p2p.reset();
  efa.no_completion_cmds.reset();
  efa.problems.clear();
  return efa;
}

void keep_devices(HostScan& scan, std::map<int, NeuronDevice>& before) {
  std::map<int, NeuronDevice> gone = before;
  for (const NeuronDevice& device : scan.devices) {
    gone.erase(device.index);
    before[device.index] = device;
  }
  for (auto& [index, device] : gone) scan.devices.push_back(as_vanished(std::move(device)));
  std::sort(scan.devices.begin(), scan.devices.end(),
            [](const NeuronDevice& a, const NeuronDevice& b) { return a.index < b.index; });
}

void keep_efas(HostScan& scan, std::map<model::Bdf, EfaInterface>& before) {
  std::map<model::Bdf, EfaInterface> gone = before;
  for (EfaInterface& efa : scan.efas) {
    const auto known = gone.extract(efa.bdf);
    if (!efa.name.empty()) {
      before[efa.bdf] = efa;
    } else if (known) {
      efa.name = known.mapped().name;
    }
  }
  for (auto& [bdf, efa] : gone) scan.efas.push_back(as_vanished(std::move(efa)));
  std::sort(scan.efas.begin(), scan.efas.end(),
            [](const EfaInterface& a, const EfaInterface& b) { return a.bdf < b.bdf; });
}

}  // namespace

void keep_vanished(HostScan& scan, SeenBefore& before) {
  keep_devices(scan, before.devices);
  keep_efas(scan, before.efas);
}

}  // namespace neuron::core
