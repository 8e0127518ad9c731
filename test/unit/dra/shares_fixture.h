#pragma once

#include <string>

#include "agent/core/logical_cores.h"
#include "test/unit/dra/claims_fixture.h"

namespace neuron::plugin::dra {

// A node whose devices claims share by their cores.
class ClaimShares : public ClaimsTest {
 protected:
  void SetUp() override {
    node_ = node_of("trn2.48xlarge");  // four logical cores per device, of two places each
    ClaimsTest::SetUp();
  }
  static ResultText share(const std::string& request, int device, int cores, const std::string& id) {
    ResultText one{request, "neuron-device-" + std::to_string(device)};
    one.more = {{"shareID", id}, {"consumedCapacity", {{"cores", std::to_string(cores)}, {"memory", "0"}}}};
    return one;
  }
  // A claim with one share; its id is the claim's name.
  std::string put_and_prepare(const std::string& name, int device, int cores) {
    put_claim(name, {share("cores", device, cores, name)});
    return prepare(name).error;
  }
  // The reason of its refusal.
  std::string put_and_refuse(const std::string& name, int device, int cores) {
    put_claim(name, {share("cores", device, cores, name)});
    return std::string(prepare(name).reason);
  }
  // A claim whose request says no capacity.
  void put_alone(const std::string& name, const ResultText& result) {
    put_claim(name, {result});
    json claim = api_.at(claim_path(name));
    claim["spec"]["devices"]["requests"] = {
        {{"name", result.request}, {"exactly", {{"deviceClassName", "neuron.aws.com"}}}}};
    api_.put(claim_path(name), claim);
  }
  [[nodiscard]] std::string cdi_device(const std::string& name) const {
    const json spec = cdi_of(uid_of(name));
    return spec.is_object() ? spec["devices"][0]["name"].get<std::string>() : "";
  }
  void heal(int device) {
    change_node([&](model::HostScan& host) {
      for (model::NeuronDevice& one : host.devices) {
        if (one.index == device) one.core_health.clear();
        if (one.index == device) one.health = {model::HealthState::healthy, "", "", ""};
      }
    });
  }
  void make_core_ill(int device, int core) {
    change_node([&](model::HostScan& host) {
      for (model::NeuronDevice& one : host.devices) {
        if (one.index != device) continue;
        const model::Health failed{model::HealthState::unhealthy, "core_errors", "a core has failed", "replace it"};
        one.core_health.assign(8, model::Health{model::HealthState::healthy, "", "", ""});
        one.health = failed;
        for (const int physical : core::physical_cores_of(one, host, core)) {
          one.core_health[static_cast<std::size_t>(physical)] = failed;
        }
      }
    });
  }
};

}  // namespace neuron::plugin::dra
