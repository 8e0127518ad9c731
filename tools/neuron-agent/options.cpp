#include "tools/neuron-agent/options.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "agent/base/parse.h"
#include "agent/kube/api.h"

namespace neuron::agent {
namespace {

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

// Errors: one option excludes everything that the other leaves, on any node.
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

// `user`: the option that needs the node's name.
Result<void> check_node_name(const Options& options, const std::string& user) {
  if (options.node_name.empty()) {
    return fail(ErrorCode::invalid_argument, user +
                                                 " needs --node-name (or NODE_NAME), the name of this node's object "
                                                 "in the API server");
  }
  auto name = kube::check_node_name(options.node_name);
  return name ? Result<void>{} : fail(std::move(name).error().with_context("--node-name"));
}

// Without the writer of the node's status the taint would stay.
Result<void> check_startup_taint(const plugin::NodeStatusOptions& options) {
  if (!options.startup_taint || options.enabled) return {};
  return fail(ErrorCode::invalid_argument, "--startup-taint needs --node-status on, which removes the taint");
}

Result<void> check_api_server(const kube::ApiFlags& api) {
  if (api.server.empty()) return {};
  auto places = kube::api_places(api, {});
  if (!places && places.error().code == ErrorCode::invalid_argument) return fail(std::move(places).error());
  return {};
}

void settle_pool(Options& options) {
  options.dra.pool.core_devices = options.offer.core_devices;
  if (options.offer.core_devices && options.dra.pool.partitions != plugin::dra::Partitions::none) {
    options.doubts.emplace_back("--core-devices has no effect beside --dra-partitions, which offers every device");
  }
  if (options.dra.pool.shares == plugin::dra::Shares::on &&
      options.dra.pool.partitions != plugin::dra::Partitions::none) {
    options.doubts.emplace_back(
        "--dra-shares=on has no effect beside --dra-partitions, whose counters count no shares");
  }
}

std::string or_words(const std::string& text, const char* words) {
  return text.empty() ? words : text;
}

std::string true_or_false(bool value) {
  return value ? "true" : "false";
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

std::string Options::effective_host_path_prefix() const {
  if (host_path_prefix_set) return host_path_prefix;
  if (root == "/") return "";
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(root, error);  // a runtime needs absolute paths
  return error ? root : absolute.lexically_normal().string();
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
  TRY(check_startup_taint(options.node_status));
  if (options.node_status.enabled || options.honor_placement) {
    TRY(check_node_name(options, options.node_status.enabled ? "--node-status on" : "--honor-placement on"));
    TRY(check_api_server(options.api));
  }
  TRY(apply_node_groups(options, instance_type));
  return check_offer(options);
}

Result<void> settle_catalogue(Options& options) {
  if (!options.node_name.empty()) TRY(check_node_name(options, ""));
  settle_pool(options);
  return check_offer(options);
}

Result<void> settle_dra(Options& options) {
  TRY(check_node_name(options, "--mode dra"));
  TRY(check_startup_taint(options.node_status));
  TRY(check_api_server(options.api));
  const bool chosen = options.offer.resources || !options.node_groups.empty() || options.neurondevice || options.cdi;
  if (chosen) {
    options.doubts.emplace_back(
        "--resources, --node-groups, --neurondevice and --cdi have no effect in DRA mode: everything is offered, and "
        "claims use CDI");
  }
  settle_pool(options);
  if (options.take_over) {
    options.doubts.emplace_back("--take-over has no effect in DRA mode, where instances overlap without it");
  }
  if (options.honor_placement) {
    options.doubts.emplace_back("--honor-placement has no effect in DRA mode, where the scheduler chooses devices");
  }
  if (!options.dra.server.empty() && !options.once) {
    options.doubts.emplace_back(
        "--dra-server has an effect only with --once: without it the API server itself is queried");
  }
  return {};
}

std::vector<std::string> describe(const Options& options) {
  const bool is_dra = options.mode == Mode::dra;
  const bool is_host_numbering = options.core_numbering == grant::CoreNumbering::host;
  const int unhealthy = options.node_status.report.unhealthy_devices;
  const auto& startup_taint = options.node_status.startup_taint;
  std::vector<std::string> lines = {
      std::string("mode=") + (is_dra ? "dra" : "device-plugin"),
      "root=" + options.root,
      "kubelet-dir=" + options.kubelet_dir,
      "host-path-prefix=" + options.effective_host_path_prefix(),
      std::string("core-numbering=") + (is_host_numbering ? "host" : "container"),
      "neurondevice=" + true_or_false(options.neurondevice),
      "resources=" + core::format_resource_list(options.offer_policy().resources),
      "core-devices=" + core::format_core_devices(options.offer.core_devices),
      "node-groups=" + or_words(options.node_groups, "off"),
      "node-group=" + or_words(options.node_group, "none"),
      "node-name=" + or_words(options.node_name, "unknown"),
      "cdi=" + (options.cdi ? options.cdi_dir : "off"),
      std::string("honor-placement=") + (options.honor_placement ? "on" : "off"),
      "take-over=" + true_or_false(options.take_over),
      "scan-interval=" + std::to_string(options.scan_interval.count()) + "ms",
      "pod-resources-interval=" + std::to_string(options.pod_resources_interval.count()) + "ms",
      std::string("kernel-log=") + (options.kernel_log == host::KernelLogUse::none ? "off" : "on"),
      "metrics-address=" + (options.metrics_address ? to_string(*options.metrics_address) : "off"),
      "metrics-tls-cert=" + or_words(options.metrics_tls_cert, "off"),
      "metrics-tls-key=" + or_words(options.metrics_tls_key, "off"),
      std::string("node-document=") + (options.node_document ? "on" : "off"),
      "log-level=" + options.log_level,
      std::string("node-status=") + (options.node_status.enabled ? "on" : "off"),
      "accelerated-hardware-ready=" + true_or_false(options.node_status.report.hardware_ready),
      "unhealthy-devices-for-node=" + (unhealthy > 0 ? std::to_string(unhealthy) : "half"),
      "startup-taint=" + (startup_taint ? status::to_string(*startup_taint) : "off")};
  const auto add = [&lines](std::vector<std::string> more) {
    std::move(more.begin(), more.end(), std::back_inserter(lines));
  };
  if (is_dra) {
    const plugin::dra::PoolOptions& pool = options.dra.pool;
    add({std::string("dra-claim-status=") + (options.dra.claim_status ? "on" : "off"), "dra-driver-name=" + pool.driver,
         "dra-partitions=" + word_of(pool.partitions), "dra-pool=" + options.pool_name(),
         "dra-shares=" + word_of(pool.shares), "dra-taint-effect=" + or_words(pool.taint_effect, "none"),
         "dra-ultraserver=" + word_of(pool.ultraserver), "dra-server=" + or_words(options.dra.server, "unsaid"),
         "pod-uid=" + or_words(options.dra.pod_uid, "unknown")});
  }
  if (is_dra || options.node_status.enabled || options.honor_placement) {
    add({"api-server=" + or_words(options.api.server, "in-cluster"),
         "api-token-file=" + or_words(options.api.token_file, "in-cluster"),
         "api-ca-file=" + or_words(options.api.ca_file, "in-cluster")});
  }
  return lines;
}

}  // namespace neuron::agent
