#include <array>
#include <charconv>
#include <string>

#include "agent/metrics/families_parts.h"

namespace neuron::metrics {
namespace {

std::string hex(std::uint16_t value) {
  std::array<char, 4> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return std::string(digits.data(), end.ptr);
}

std::string file_of(const Metric& counter) {
  return std::string(counter.name.substr(kEfaCounterPrefix.size()));
}

// Of the interface with that RDMA name, which the usage reader took from the same scan or an older one.
Labels holder_of(const Scrape& scrape, const std::string& name) {
  const auto& efas = scrape.host.efas;
  for (std::size_t position = 0; position < efas.size(); ++position) {
    if (efas[position].name == name) return scrape.holders.of_efa(static_cast<int>(position));
  }
  return scrape.holders.of_efa(-1);
}

}  // namespace

void add_efas(const Scrape& scrape, FamilySet& families) {
  int position = 0;
  for (const model::EfaInterface& efa : scrape.host.efas) {
    const Labels place{{"device", efa.name}, {"bdf", to_string(efa.bdf)}};
    const Labels labels = with(place, scrape.holders.of_efa(position++));
    const std::string numa = efa.numa_node ? std::to_string(*efa.numa_node) : "";
    families["efa_info"].add(with(labels, {{"pci_device", hex(efa.pci_device_id)},
                                           {"numa_node", numa},
                                           {"driver_version", scrape.host.efa_driver_version}}),
                             1);
    add_presence(efa.presence, place, families["efa_present"]);
    add_health(efa.health, labels, families["efa_healthy"], families["efa_health_info"]);
  }
}

void add_efa_counters(const Scrape& scrape, FamilySet& families) {
  if (scrape.usage == nullptr) return;
  for (const model::EfaUsage& efa : scrape.usage->efas) {
    if (efa.counters.empty()) continue;
    const Labels labels = with({{"device", efa.name}, {"port", "1"}}, holder_of(scrape, efa.name));
    families["node_amazonefa_info"].add(labels, 1);
    // By the table: a driver's further counters have names that nobody knows.
    for (const Metric& metric : efa_counter_metrics()) {
      if (metric.type != MetricType::counter) continue;
      const auto found = efa.counters.find(file_of(metric));
      if (found != efa.counters.end()) families[metric.name].add(labels, static_cast<double>(found->second));
    }
  }
}

}  // namespace neuron::metrics
