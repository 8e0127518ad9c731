#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/core/offer_policy.h"
#include "agent/grant/grant.h"
#include "agent/kube/cluster_access.h"
#include "plugin/daemon/node_daemon.h"
#include "tools/neuron-agent/dra_options.h"
#include "tools/neuron-agent/mode_options.h"
#include "tools/neuron-agent/node_status_options.h"
#include "tools/neuron-agent/offer_choice.h"

namespace CLI {
class App;
}

namespace neuron::agent {

// All options of `neuron-agent run`, parsed once, then const. Flag over environment over default; the offer may also
// come from the group of --node-groups that the node is in, between environment and default.
struct Options : plugin::DaemonSettings {
  Mode mode = Mode::device_plugin;               // --mode device-plugin|dra
  std::string kubelet_dir = "/var/lib/kubelet";  // --kubelet-dir; device-plugins/ and pod-resources/ below it
  std::string host_path_prefix;                  // --host-path-prefix; default: the root, "" for "/"
  bool host_path_prefix_set = false;
  grant::CoreNumbering core_numbering = grant::CoreNumbering::container;  // --core-numbering container|host
  bool neurondevice = false;        // --neurondevice: also advertise the old alias
  OfferChoice offer;                // --resources, --core-devices
  std::string node_groups;          // --node-groups FILE; "": none
  std::string node_group;           // name of the group that completed `offer`; "": none. Set by settle_offer
  std::vector<std::string> doubts;  // of the file of --node-groups, a sentence each, to be logged. Set by settle_offer
  std::chrono::milliseconds pod_resources_interval{10000};  // --pod-resources-interval
  bool cdi = false;                                         // --cdi: CDI names too, specs in cdi_dir
  std::string cdi_dir = "/var/run/cdi";  // --cdi-dir; in DRA mode each claim's spec, whatever `cdi` says
  kube::ApiFlags api;                    // --api-server, --api-token-file, --api-ca-file; of the above and DRA
  DraOptions dra;                        // of DRA mode alone
  std::string log_level = "info";        // --log-level debug|info|warn|error
  bool once = false;                     // --once: scan, print what would be advertised, exit
  bool check_config = false;             // --check-config: print the effective values, exit

  [[nodiscard]] std::string device_plugins_dir() const { return kubelet_dir + "/device-plugins"; }
  [[nodiscard]] std::string pod_resources_socket() const { return kubelet_dir + "/pod-resources/kubelet.sock"; }
  [[nodiscard]] std::string effective_host_path_prefix() const;  // "" for a live root
  [[nodiscard]] core::OfferPolicy offer_policy() const;
};

// Errors: invalid_argument, when a file of TLS is given without the other, or without an address to answer on.
[[nodiscard]] Result<void> check_metrics_options(const Options& options);

// Adds the flags of `run` to a CLI11 command, writing into `options`, which must outlive the parse.
void add_options(CLI::App& command, Options& options);

// Reads the file of --node-groups, if one is given, and completes `offer` from the group that this node is in.
// `instance_type` is not looked at without that file. Errors: as of read_node_groups and find_group, naming the file;
// invalid_argument for choices that offer nothing on any node.
[[nodiscard]] Result<void> settle_offer(Options& options, const std::string& instance_type);

// The same in DRA mode, where what is offered is not chosen. Errors: as of check_dra_options.
[[nodiscard]] Result<void> settle_dra(Options& options);

// One "name=value" per option, in the order of --help: for the start-up log line and --check-config.
[[nodiscard]] std::vector<std::string> describe(const Options& options);

}  // namespace neuron::agent
