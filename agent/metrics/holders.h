#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/holdings/ledger.h"
#include "agent/metrics/family_set.h"

namespace neuron::metrics {

// Which container holds a core, a device or an interface, as labels. Copies what it needs; immutable.
class Holders {
 public:
  explicit Holders(const std::vector<holdings::Holding>& holdings);

  // `namespace`, `pod` and `container`; all three empty when nobody holds it, when several containers do (a device
  // whose cores went to different ones), and while it is not known who does.
  [[nodiscard]] const Labels& of_core(int id) const { return find(cores_, id); }            // global logical core id
  [[nodiscard]] const Labels& of_device(int index) const { return find(devices_, index); }  // index of the device
  [[nodiscard]] const Labels& of_efa(int position) const { return find(efas_, position); }  // in HostScan::efas

 private:
  struct Held {
    std::string by;  // by which containers are told apart
    Labels labels;
  };
  using Map = std::map<int, Held>;

  static void add(Map& map, const std::vector<int>& units, const Held& held);
  [[nodiscard]] const Labels& find(const Map& map, int unit) const;

  Labels nobody_;
  Map cores_;
  Map devices_;
  Map efas_;
};

}  // namespace neuron::metrics
