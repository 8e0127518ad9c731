#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "agent/preflight/preflight.h"
#include "test/unit/core/make_host.h"

// A node with nothing wrong, to be broken by tests.
namespace neuron::test {

struct CheckedHost {
  model::HostScan scan;
  preflight::PreflightFacts facts;
};

inline CheckedHost sound_host(const std::string& type) {
  CheckedHost host;
  host.scan = silent_scan(type);
  host.scan.neuron_pci_functions = static_cast<int>(host.scan.devices.size());
  for (model::NeuronDevice& device : host.scan.devices) {
    device.arch = "NDv2";
    device.serial = "19fcda00f5ff6e0" + std::to_string(device.index);
    device.bdf = {{0, 0x10, static_cast<std::uint8_t>(device.index), 0}, model::Origin::live};
    device.neighbours = {core::find_instance_type(type)->devices[static_cast<std::size_t>(device.index)].neighbours,
                         model::Origin::live};
  }
  for (model::EfaInterface& efa : host.scan.efas) efa.p2p = host.scan.devices.empty() ? "NVIDIA" : "NEURON";
  host.scan = core::complete(std::move(host.scan));
  preflight::PreflightFacts& facts = host.facts;
  facts.neuron_class = facts.verbs_class = facts.uverbs_module = preflight::PathState::present;
  facts.online_cpus = 128;
  facts.huge_pages.reserved_2m = 110 * 128 + 1;
  facts.kubelet.directory = "/var/lib/kubelet";
  facts.kubelet.itself = facts.kubelet.device_plugins = preflight::PathState::present;
  facts.kubelet.kubelet_socket = facts.kubelet.pod_resources_socket = preflight::PathState::present;
  facts.cdi.state = preflight::CdiFacts::State::on;
  facts.fabric.state = preflight::FabricFacts::State::answered;
  facts.fabric.version = "2.3";
  for (const model::EfaInterface& efa : host.scan.efas) facts.fabric.interfaces.push_back(efa.name);
  return host;
}

// A sound host on which the driver of claims runs, of Kubernetes 1.36.
inline void add_claims(CheckedHost& host) {
  preflight::ClaimFacts& claims = host.facts.claims;
  claims.asked = claims.found = claims.config_read = true;
  claims.driver = "neuron.aws.com";
  claims.kubelet = "/var/lib/kubelet";
  claims.registry = claims.cdi_directory = claims.claims_file = preflight::PathState::present;
  claims.driver_sockets = {
      {"/var/lib/kubelet/plugins/neuron.aws.com/dra-1-2.sock", preflight::ClaimFacts::SocketState::listening}};
  claims.kubelet_version = "1.36.3-1.1";
  claims.prepared = claims.described = {"1111-aa", "2222-bb"};
}

inline std::vector<std::string> codes_of(const std::vector<preflight::Finding>& findings) {
  std::vector<std::string> codes;
  for (const preflight::Finding& finding : findings) codes.push_back(finding.code);
  return codes;
}

inline std::vector<preflight::Finding> check(const CheckedHost& host) {
  return preflight::preflight(host.scan, host.facts);
}

// The only finding of that code, or an empty one.
inline preflight::Finding finding_of(const CheckedHost& host, const std::string& code) {
  const auto findings = check(host);
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const auto& f) { return f.code == code; });
  return found == findings.end() ? preflight::Finding{} : *found;
}

}  // namespace neuron::test
