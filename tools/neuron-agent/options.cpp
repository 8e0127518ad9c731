#include "tools/neuron-agent/options.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <system_error>

#include "agent/base/parse.h"
#include "tools/neuron-agent/api_options.h"
#include "tools/neuron-agent/node_groups.h"

namespace neuron::agent {
namespace {

// A duration option with its environment twin, checked while parsing so that CLI11 names the flag in the error.
void add_duration(CLI::App& command, const std::string& flag, std::chrono::milliseconds& value, const std::string& env,
                  const std::string& help) {
  command
      .add_option_function<std::string>(
          flag,
          [&value, flag](const std::string& text) {
            const auto parsed = parse_duration(text);
            if (!parsed) throw CLI::ValidationError(flag, parsed.error().message);
            value = *parsed;
          },
          help)
      ->envname(env)
      ->type_name("TIME")
      ->default_str(std::to_string(value.count() / 1000) + "s");
}

void add_offer_options(CLI::App& command, Options& options) {
  command
      .add_option_function<std::string>(
          "--resources",
          [&options](const std::string& text) {
            auto parsed = core::parse_resource_list(text);
            if (!parsed) throw CLI::ValidationError("--resources", parsed.error().message);
            options.offer.resources = *std::move(parsed);
          },
          "Resources to register: neuron, neuroncore,\nneurondevice, efa (default: all that the node\nhas, without "
          "neurondevice)")
      ->envname("NEURON_AGENT_RESOURCES")
      ->type_name("LIST");
  command
      .add_option_function<std::string>(
          "--core-devices",
          [&options](const std::string& text) {
            auto parsed = core::parse_core_devices(text);
            if (!parsed) throw CLI::ValidationError("--core-devices", parsed.error().message);
            options.offer.core_devices = *std::move(parsed);
            options.offer.core_devices_said = true;
          },
          "Devices offered only as cores, such as 0-3,8; all\nothers only whole; or all, none, off (default:\nevery "
          "device both ways)")
      ->envname("NEURON_AGENT_CORE_DEVICES")
      ->type_name("LIST");
  command
      .add_option("--node-groups", options.node_groups,
                  "JSON file with --resources and --core-devices\nfor kinds of nodes")
      ->envname("NEURON_AGENT_NODE_GROUPS")
      ->type_name("FILE");
  command
      .add_option("--node-name", options.node_name,
                  "This node's name, for --node-groups, --node-status\nand --mode dra")
      ->envname("NODE_NAME")
      ->type_name("NAME");
}

Result<void> apply_node_groups(Options& options, const std::string& instance_type) {
  if (options.node_groups.empty()) return {};
  const auto groups = read_node_groups(options.node_groups);
  if (!groups) return fail(Error(groups.error()).with_context("--node-groups"));
  const auto group = find_group(*groups, {instance_type, options.node_name});
  if (!group) return fail(Error(group.error()).with_context("--node-groups " + options.node_groups));
  for (const std::string& doubt : doubts_about(*groups)) options.doubts.push_back(options.node_groups + ": " + doubt);
  if (*group == nullptr) {
    const auto known = [](const std::string& name) { return name.empty() ? "unknown" : '"' + printable(name) + '"'; };
    options.doubts.push_back(options.node_groups + ": no group matches this node, of instance type " +
                             known(instance_type) + " and name " + known(options.node_name) +
                             ": the other options apply; a last group without patterns matches all nodes");
    return {};
  }
  options.node_group = (*group)->name;
  options.offer.complete_from((*group)->offer);
  return {};
}

// Choices of which one takes away all that the other leaves, whatever the node has.
Result<void> check_offer(const Options& options) {
  const core::OfferPolicy policy = options.offer_policy();
  if (policy.can_offer()) return {};
  const bool as_cores = policy.serves(model::Resource::neuroncore);
  std::string why = "--resources " + core::format_resource_list(policy.resources) + " with --core-devices " +
                    core::format_core_devices(policy.split) + " offers nothing on any node: ";
  why += as_cores ? "no device is offered as cores; use --core-devices all or off, or add neuron to --resources"
                  : "no device is offered whole; use --core-devices none or off, or add neuroncore to --resources";
  if (!options.node_group.empty()) why += " (group \"" + options.node_group + "\" of " + options.node_groups + ")";
  return fail(ErrorCode::invalid_argument, why);
}

void add_metrics_address(CLI::App& command, Options& options) {
  command
      .add_option_function<std::string>(
          "--metrics-address",
          [&options](const std::string& text) {
            options.metrics_address.reset();
            if (text == "off") return;
            auto parsed = parse_listen_address(text);
            if (!parsed) throw CLI::ValidationError("--metrics-address", parsed.error().message);
            options.metrics_address = *std::move(parsed);
          },
          "HTTP address of /healthz, /readyz and /metrics,\nsuch as :8000, 127.0.0.1:8000, [::1]:8000; or off")
      ->envname("NEURON_AGENT_METRICS_ADDRESS")
      ->type_name("HOST:PORT")
      ->default_str("off");
  command
      .add_option("--metrics-tls-cert", options.metrics_tls_cert,
                  "Serve over TLS with the certificate in this PEM\nfile, reloaded when it changes")
      ->envname("NEURON_AGENT_METRICS_TLS_CERT")
      ->type_name("FILE");
  command.add_option("--metrics-tls-key", options.metrics_tls_key, "The certificate's key, also reloaded")
      ->envname("NEURON_AGENT_METRICS_TLS_KEY")
      ->type_name("FILE");
}

void add_kernel_log(CLI::App& command, Options& options) {
  command
      .add_option_function<std::string>(
          "--kernel-log",
          [&options](const std::string& word) {
            options.kernel_log = word == "on" ? host::KernelLogUse::wanted : host::KernelLogUse::none;
          },
          "Also use hardware errors in the kernel log for\nhealth; needs CAP_SYSLOG")
      ->envname("NEURON_AGENT_KERNEL_LOG")
      ->type_name("on|off")
      ->check(CLI::IsMember({"on", "off"}).description(""))
      ->default_str("off");
}

}  // namespace

core::OfferPolicy Options::offer_policy() const {
  core::OfferPolicy policy;
  policy.resources = offer.resources.value_or(*core::parse_resource_list("all"));
  if (neurondevice && !policy.serves(model::Resource::neurondevice)) {
    policy.resources.push_back(model::Resource::neurondevice);
  }
  policy.split = offer.core_devices;
  return policy;
}

Result<void> check_metrics_options(const Options& options) {
  const bool with_cert = !options.metrics_tls_cert.empty();
  if (with_cert != !options.metrics_tls_key.empty()) {
    return fail(ErrorCode::invalid_argument, with_cert ? "--metrics-tls-cert needs --metrics-tls-key"
                                                       : "--metrics-tls-key needs --metrics-tls-cert");
  }
  if (with_cert && !options.metrics_address) {
    return fail(ErrorCode::invalid_argument, "--metrics-tls-cert needs --metrics-address, as in :8000");
  }
  return {};
}

Result<void> settle_offer(Options& options, const std::string& instance_type) {
  TRY(check_node_status_options(options.node_status, options.node_name));
  if (options.node_status.enabled) TRY(check_api_options(options.api));
  TRY(apply_node_groups(options, instance_type));
  return check_offer(options);
}

Result<void> settle_dra(Options& options) {
  TRY(check_dra_options(options.node_name));
  TRY(check_api_options(options.api));
  const bool chosen = options.offer.resources || options.offer.core_devices_said || !options.node_groups.empty() ||
                      options.neurondevice || options.cdi;
  if (chosen) {
    options.doubts.emplace_back(
        "--resources, --core-devices, --node-groups, --neurondevice and --cdi have no effect in DRA mode: everything "
        "is offered, and claims use CDI");
  }
  if (!options.dra.server.empty() && !options.once) {
    options.doubts.emplace_back(
        "--dra-server has an effect only with --once: without it the API server itself is queried");
  }
  return {};
}

std::string Options::effective_host_path_prefix() const {
  if (host_path_prefix_set) return host_path_prefix;
  if (root == "/") return "";
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(root, error);  // a runtime needs absolute paths
  return error ? root : absolute.lexically_normal().string();
}

void add_options(CLI::App& command, Options& options) {
  add_mode(
      command, [&options](Mode mode) { options.mode = mode; },
      "How devices are offered: device-plugin, or dra\nfor claims; one per node");
  command.add_option("--root", options.root, "Directory with the machine's sys, proc, dev")
      ->envname("NEURON_AGENT_ROOT")
      ->type_name("DIR")
      ->capture_default_str();
  command.add_option("--kubelet-dir", options.kubelet_dir, "The kubelet's directory")
      ->envname("NEURON_AGENT_KUBELET_DIR")
      ->type_name("DIR")
      ->capture_default_str();
  command
      .add_option_function<std::string>(
          "--host-path-prefix",
          [&options](const std::string& prefix) {
            options.host_path_prefix = prefix;
            options.host_path_prefix_set = true;
          },
          "Prefix of /dev/... in host paths of allocated\ndevice nodes (default: the root)")
      ->envname("NEURON_AGENT_HOST_PATH_PREFIX")
      ->type_name("DIR");
  command
      .add_option_function<std::string>(
          "--core-numbering",
          [&options](const std::string& word) {
            options.core_numbering = word == "host" ? grant::CoreNumbering::host : grant::CoreNumbering::container;
          },
          "Numbering of NEURON_RT_VISIBLE_CORES: from 0 in\neach container, or the host's")
      ->envname("NEURON_AGENT_CORE_NUMBERING")
      ->type_name("HOW")
      ->check(CLI::IsMember({"container", "host"}).description(""))
      ->default_str("container");
  command.add_flag("--neurondevice", options.neurondevice, "Also advertise aws.amazon.com/neurondevice")
      ->envname("NEURON_AGENT_NEURONDEVICE");
  add_offer_options(command, options);
  command.add_flag("--cdi", options.cdi, "Also answer with CDI names, and write their specs")
      ->envname("NEURON_AGENT_CDI");
  command.add_option("--cdi-dir", options.cdi_dir, "Directory of the CDI specs (--cdi and DRA mode)")
      ->envname("NEURON_AGENT_CDI_DIR")
      ->type_name("DIR")
      ->capture_default_str();
  add_duration(command, "--scan-interval", options.scan_interval, "NEURON_AGENT_SCAN_INTERVAL",
               "Time between two scans of the machine");
  add_duration(command, "--pod-resources-interval", options.pod_resources_interval,
               "NEURON_AGENT_POD_RESOURCES_INTERVAL", "Longest time between two PodResources queries\nto the kubelet");
  add_kernel_log(command, options);
  add_metrics_address(command, options);
  add_node_status_options(command, options.node_status);
  add_dra_options(command, options.dra);
  add_api_options(command, options.api);
  command.add_option("--log-level", options.log_level, "Least severe message to log")
      ->envname("NEURON_AGENT_LOG_LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->capture_default_str();
  command.add_flag("--once", options.once, "Print what would be advertised, then exit");
  command.add_flag("--check-config", options.check_config, "Print the effective options, then exit");
}

std::vector<std::string> describe(const Options& options) {
  std::vector<std::string> lines = {
      std::string("mode=") + (options.mode == Mode::dra ? "dra" : "device-plugin"),
      "root=" + options.root,
      "kubelet-dir=" + options.kubelet_dir,
      "host-path-prefix=" + options.effective_host_path_prefix(),
      std::string("core-numbering=") + (options.core_numbering == grant::CoreNumbering::host ? "host" : "container"),
      std::string("neurondevice=") + (options.neurondevice ? "true" : "false"),
      "resources=" + core::format_resource_list(options.offer_policy().resources),
      "core-devices=" + core::format_core_devices(options.offer.core_devices),
      "node-groups=" + (options.node_groups.empty() ? "off" : options.node_groups),
      "node-group=" + (options.node_group.empty() ? "none" : options.node_group),
      "node-name=" + (options.node_name.empty() ? "unknown" : options.node_name),
      std::string("cdi=") + (options.cdi ? options.cdi_dir : "off"),
      "scan-interval=" + std::to_string(options.scan_interval.count()) + "ms",
      "pod-resources-interval=" + std::to_string(options.pod_resources_interval.count()) + "ms",
      std::string("kernel-log=") + (options.kernel_log == host::KernelLogUse::none ? "off" : "on"),
      "metrics-address=" + (options.metrics_address ? to_string(*options.metrics_address) : "off"),
      "metrics-tls-cert=" + (options.metrics_tls_cert.empty() ? "off" : options.metrics_tls_cert),
      "metrics-tls-key=" + (options.metrics_tls_key.empty() ? "off" : options.metrics_tls_key),
      "log-level=" + options.log_level};
  const auto add = [&lines](std::vector<std::string> more) {
    for (std::string& line : more) lines.push_back(std::move(line));
  };
  add(describe_node_status(options.node_status));
  if (options.mode == Mode::dra) add(describe_dra(options.dra, options.node_name));
  if (options.mode == Mode::dra || options.node_status.enabled) add(describe_api(options.api));
  return lines;
}

}  // namespace neuron::agent
