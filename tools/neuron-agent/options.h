#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/fd.h"
#include "agent/base/result.h"
#include "agent/core/offer_policy.h"
#include "agent/grant/grant.h"
#include "agent/kube/cluster_access.h"
#include "plugin/daemon/node_daemon.h"
#include "plugin/dra/slices/pool.h"
#include "tools/neuron-agent/node_groups.h"

namespace CLI {
class App;
}

namespace neuron::agent {

enum class Command { run, check, withdraw, explain, catalogue };
enum class Mode { device_plugin, dra };
enum class ReportForm { text, json, yaml, slices, overlays, tags };  // check and explain have the first two

// Options of --mode dra alone.
struct DraOptions {
  // --dra-driver-name, --dra-partitions, --dra-shares, --dra-taint-effect, --dra-ultraserver; --core-devices, by
  // settle_dra
  plugin::dra::PoolOptions pool;
  std::string pool_name;                // --dra-pool; "" = the node's name
  std::string server;                   // --dra-server, for --once; "" = a server that accepts everything
  plugin::dra::LayoutOptions layout{};  // of that server
  bool claim_status = false;            // --dra-claim-status
  std::string pod_uid;                  // --pod-uid; "" = this instance is never beside another
};

// Options of all commands (option_table.cpp), parsed once, then const. Flag over environment over default; the offer
// may also come from the group of --node-groups that the node is in, between environment and default. With `root` and
// the driver's name in `dra`, those of more than one command.
struct Options : plugin::DaemonSettings {
  std::string kubelet_dir = "/var/lib/kubelet";  // --kubelet-dir; device-plugins/ and pod-resources/ below it
  bool kubelet_dir_set = false;                  // by flag or variable

  // run
  Mode mode = Mode::device_plugin;  // --mode
  std::string host_path_prefix;     // --host-path-prefix; default: the root, "" for "/"
  bool host_path_prefix_set = false;
  grant::CoreNumbering core_numbering = grant::CoreNumbering::container;  // --core-numbering
  bool neurondevice = false;        // --neurondevice: also advertise the old alias
  OfferChoice offer;                // --resources, --core-devices
  std::string node_groups;          // --node-groups; "": none
  std::string node_group;           // name of the group that completed `offer`; "": none. Set by settle_offer
  std::vector<std::string> doubts;  // warnings for the log, a sentence each. Set by settle_offer and settle_dra
  bool honor_placement = false;     // --honor-placement: ids that a scheduler extender wrote on pods
  bool take_over = false;           // --take-over: wait for the device plugin that serves, then serve
  std::chrono::milliseconds pod_resources_interval{10000};  // --pod-resources-interval
  bool cdi = false;                                         // --cdi: CDI names too, specs in cdi_dir
  std::string cdi_dir = "/var/run/cdi";  // --cdi-dir; in DRA mode each claim's spec, whatever `cdi` says
  kube::ApiFlags api;                    // --api-server, --api-token-file, --api-ca-file; also of `withdraw`
  DraOptions dra;
  std::string log_level = "info";  // --log-level
  bool once = false;               // --once: scan, print what would be advertised, exit
  bool check_config = false;       // --check-config: print the effective values, exit

  // catalogue, with those of `run` that change what is offered
  std::vector<std::string> types;  // instance types; none: all
  std::optional<int> lnc;          // --lnc; nullopt: each family's default
  std::string driver_version;      // --driver-version, an attribute in slices; "" = unknown

  // check, explain; the first also of catalogue
  ReportForm output = ReportForm::text;      // --output
  std::chrono::milliseconds timeout{10000};  // --timeout, for everything
  std::optional<Mode> intended_mode;  // --mode of check; dra: requirements of claims count, even where no driver ran
  std::string claims_cdi_dir;         // --cdi-dir of check; "": var/run/cdi below the root
  std::optional<std::string> claim;   // --claim: a file, "-" = standard input; the node is not checked then
  bool no_fabric = false;             // --no-fabric: no query to libfabric, which otherwise has half of the timeout
  std::string pod;                    // of explain: "namespace/name", or a name that is unique on the node

  [[nodiscard]] std::string device_plugins_dir() const { return kubelet_dir + "/device-plugins"; }
  [[nodiscard]] std::string pod_resources_socket() const { return kubelet_dir + "/pod-resources/kubelet.sock"; }
  [[nodiscard]] std::string effective_host_path_prefix() const;  // "" for a live root
  [[nodiscard]] std::string pool_name() const { return dra.pool_name.empty() ? node_name : dra.pool_name; }
  [[nodiscard]] core::OfferPolicy offer_policy() const;
};

// Adds the options of a command to its CLI11 command. They write into `options`, which must outlive the parse.
void add_options(CLI::App& app, Command command, Options& options);

// The word of an option's value, as the command line has it.
[[nodiscard]] std::string word_of(plugin::dra::Partitions value);
[[nodiscard]] std::string word_of(plugin::dra::Shares value);
[[nodiscard]] std::string word_of(plugin::dra::UltraServer value);

// Errors: invalid_argument, when a file of TLS is given without the other, or without an address to listen on.
[[nodiscard]] Result<void> check_metrics_options(const Options& options);

// Reads the file of --node-groups, if one is given, and completes `offer` from the group that this node is in.
// `instance_type` is used only with that file. Errors: as of read_node_groups and find_group, naming the file;
// invalid_argument for choices that offer nothing on any node, and for --node-status or --honor-placement
// without a valid node name.
[[nodiscard]] Result<void> settle_offer(Options& options, const std::string& instance_type);

// Settles the options of DRA mode, where of the offer only --core-devices can be chosen. Errors: invalid_argument for a
// node name or a URL of the API server that is missing or invalid.
[[nodiscard]] Result<void> settle_dra(Options& options);

// Settles the options of `catalogue`, which has those of both modes. Errors: invalid_argument for an offer that offers
// nothing on any node.
[[nodiscard]] Result<void> settle_catalogue(Options& options);

// One "name=value" per option of `run`: for the start-up log line and --check-config.
[[nodiscard]] std::vector<std::string> describe(const Options& options);

}  // namespace neuron::agent
