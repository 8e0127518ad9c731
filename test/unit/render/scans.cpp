#include "test/unit/render/scans.h"

#include <array>
#include <numeric>
#include <string_view>

#include "agent/base/parse.h"

namespace neuron::test {
namespace {

using model::Family;
using model::HostScan;
using model::NeuronDevice;
using model::Process;

constexpr std::uint64_t kGib = 1ULL << 30U;

template <typename T>
model::Maybe<T> live(T value) {
  return model::Sourced<T>{std::move(value), model::Origin::live};
}

std::vector<int> list(std::string_view text) {
  return parse_int_list(text, 1023).value();
}

struct Place {
  std::string_view bdf;
  std::vector<int> neighbours;
};

NeuronDevice device(int index, Family family, int cores, std::uint64_t memory_gib, const Place& place) {
  NeuronDevice result;
  result.index = index;
  result.family = family;
  result.physical_cores = live(cores);
  result.neighbours = live(place.neighbours);
  result.bdf = live(model::parse_bdf(place.bdf).value());
  result.memory_bytes = memory_gib * kGib;
  result.node_present = true;
  result.processes.emplace();
  return result;
}

}  // namespace

HostScan trn1_32xlarge() {
  const std::array<Place, 16> places = {{{"0000:10:1b.0", {12, 3, 4, 1}},
                                         {"0000:10:1e.0", {13, 0, 5, 2}},
                                         {"0000:a0:1b.0", {14, 1, 6, 3}},
                                         {"0000:a0:1e.0", {15, 2, 7, 0}},
                                         {"0000:20:1e.0", {0, 7, 8, 5}},
                                         {"0000:20:1c.0", {1, 4, 9, 6}},
                                         {"0000:90:1e.0", {2, 5, 10, 7}},
                                         {"0000:90:1c.0", {3, 6, 11, 4}},
                                         {"0000:20:1d.0", {4, 11, 12, 9}},
                                         {"0000:20:1b.0", {5, 8, 13, 10}},
                                         {"0000:90:1d.0", {6, 9, 14, 11}},
                                         {"0000:90:1b.0", {7, 10, 15, 8}},
                                         {"0000:10:1c.0", {8, 15, 0, 13}},
                                         {"0000:10:1d.0", {9, 12, 1, 14}},
                                         {"0000:a0:1c.0", {10, 13, 2, 15}},
                                         {"0000:a0:1d.0", {11, 14, 3, 12}}}};
  HostScan scan;
  scan.instance_type = "trn1.32xlarge";
  scan.instance_id = "i-0fc767be0ec5465d7";
  scan.lnc = live(1);
  for (int i = 0; i < 16; ++i) {
    NeuronDevice added = device(i, Family::trainium1, 2, 32, places[static_cast<std::size_t>(i)]);
    const int numa = added.bdf->value.bus >= 0x90 ? 1 : 0;
    added.numa_node = live(numa);
    added.cpus = live(list(numa == 0 ? "0-31,64-95" : "32-63,96-127"));
    scan.devices.push_back(added);
  }
  return scan;
}

HostScan trn2_48xlarge() {
  const std::array<Place, 16> places = {{{"0000:cc:00.0", {12, 1, 3, 4}},
                                         {"0000:b5:00.0", {0, 13, 5, 2}},
                                         {"0000:b6:00.0", {14, 3, 1, 6}},
                                         {"0000:cb:00.0", {2, 15, 7, 0}},
                                         {"0000:6f:00.0", {8, 5, 7, 0}},
                                         {"0000:58:00.0", {4, 9, 1, 6}},
                                         {"0000:59:00.0", {10, 7, 5, 2}},
                                         {"0000:6e:00.0", {6, 11, 3, 4}},
                                         {"0000:9b:00.0", {4, 9, 11, 12}},
                                         {"0000:84:00.0", {8, 5, 13, 10}},
                                         {"0000:85:00.0", {6, 11, 9, 14}},
                                         {"0000:9a:00.0", {10, 7, 15, 8}},
                                         {"0000:f8:00.0", {0, 13, 15, 8}},
                                         {"0000:e1:00.0", {12, 1, 9, 14}},
                                         {"0000:e2:00.0", {2, 15, 13, 10}},
                                         {"0000:f7:00.0", {14, 3, 11, 12}}}};
  HostScan scan;
  scan.instance_type = "trn2.48xlarge";
  scan.instance_id = "i-00d43e71ad09bbe0e";
  scan.lnc = live(2);
  for (int i = 0; i < 16; ++i) {
    NeuronDevice added = device(i, Family::trainium2, 8, 96, places[static_cast<std::size_t>(i)]);
    const bool node0 = i >= 4 && i <= 11;
    added.numa_node = live(node0 ? 0 : 1);
    added.cpus = live(list(node0 ? "0-47,96-143" : "48-95,144-191"));
    scan.devices.push_back(added);
  }
  return scan;
}

HostScan inf1_6xlarge_busy() {
  HostScan scan;
  scan.lnc = live(1);
  const std::array<Place, 4> places = {
      {{"0000:00:1c.0", {1}}, {"0000:00:1d.0", {2, 0}}, {"0000:00:1e.0", {3, 1}}, {"0000:00:1f.0", {2}}}};
  for (int i = 0; i < 4; ++i) {
    scan.devices.push_back(device(i, Family::inferentia, 4, 8, places[static_cast<std::size_t>(i)]));
    scan.devices.back().processes = {{Process{23829, 0, 0, 0}, Process{23764, 0, 0, 0}}};
  }
  scan.devices[0].processes->push_back({23531, 0x2, 4096, 1 << 20});
  scan.devices[0].processes->push_back({23518, 0x1, 4096, 1 << 20});
  scan.devices[1].processes->push_back({23595, 0x1, 4096, 1 << 20});
  scan.devices[2].processes->push_back({23608, 0xf, 4096, 1 << 20});
  return scan;
}

std::map<int, std::string> inf1_commands() {
  const std::string app = " infer --input-data-directory ~/my_input_data --inference-count 5000 --verbose";
  return {{23518, "neuron-app01" + app}, {23531, "neuron-app02" + app}, {23595, "neuron-app01" + app},
          {23608, "neuron-app02" + app}, {23764, "neuron-monitor"},     {23829, "neuron-ls --show-all-procs"}};
}

HostScan inf2_xlarge() {
  HostScan scan;
  scan.instance_type = "inf2.xlarge";
  scan.instance_id = "i-0a1b2c3d4e5f60718";
  scan.lnc = live(1);
  scan.devices.push_back(device(0, Family::inferentia2, 2, 32, {"0000:00:1f.0", {}}));
  scan.devices[0].numa_node = live(-1);
  scan.devices[0].cpus = live(list("0-3"));
  return scan;
}

HostScan inf2_48xlarge_bare() {
  HostScan scan;
  scan.lnc = live(1);
  for (int i = 0; i < 12; ++i) {
    NeuronDevice added;
    added.index = i;
    added.node_present = true;
    added.physical_cores = live(2);
    added.neighbours = live(std::vector<int>{(i + 11) % 12, (i + 1) % 12});
    scan.devices.push_back(added);
  }
  return scan;
}

std::vector<std::vector<int>> core_ids_of(const HostScan& scan) {
  std::vector<std::vector<int>> ids;
  for (const NeuronDevice& each : scan.devices) {
    const int cores = each.physical_cores && scan.lnc ? each.physical_cores->value / scan.lnc->value : 0;
    std::vector<int> own(static_cast<std::size_t>(cores));
    std::iota(own.begin(), own.end(), each.index * cores);
    ids.push_back(std::move(own));
  }
  return ids;
}

render::NodeView view_of(const HostScan& scan, render::ViewRequest request) {
  request.core_ids = core_ids_of(scan);
  return render::make_node_view(scan, request);
}

}  // namespace neuron::test
