#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <functional>
#include <utility>
#include <variant>

#include "agent/base/parse.h"
#include "agent/kube/api.h"
#include "tools/neuron-agent/options.h"

// The options of all commands as one table. Help, man page, completions and docs/configuration.md are compared with
// what it makes (test/package).
namespace neuron::agent {
namespace {

using NodeStatus = plugin::NodeStatusOptions;
using plugin::dra::Partitions;
using plugin::dra::PoolOptions;
using plugin::dra::Shares;
using plugin::dra::UltraServer;

// ---- Values: each function makes the setter of one type. `get` gives the member of Options.

using Set = std::function<Result<void>(Options&, const std::string&)>;
template <typename Value>
using Words = std::vector<std::pair<std::string, Value>>;

const Words<Mode> kModes = {{"device-plugin", Mode::device_plugin}, {"dra", Mode::dra}};
const Words<grant::CoreNumbering> kCoreNumberings = {{"container", grant::CoreNumbering::container},
                                                     {"host", grant::CoreNumbering::host}};
const Words<host::KernelLogUse> kKernelLogUses = {{"on", host::KernelLogUse::wanted},
                                                  {"off", host::KernelLogUse::none}};
const Words<std::string> kTaintEffects = {{"NoSchedule", "NoSchedule"}, {"NoExecute", "NoExecute"}, {"none", ""}};
const Words<std::string> kLogLevels = {{"debug", "debug"}, {"info", "info"}, {"warn", "warn"}, {"error", "error"}};
const Words<ReportForm> kCatalogueForms = {{"text", ReportForm::text},         {"json", ReportForm::json},
                                           {"yaml", ReportForm::yaml},         {"slices", ReportForm::slices},
                                           {"overlays", ReportForm::overlays}, {"tags", ReportForm::tags}};
const Words<bool> kOnOff = {{"on", true}, {"off", false}};
const Words<Partitions> kPartitions = {
    {"all", Partitions::all}, {"cores", Partitions::cores}, {"groups", Partitions::groups}, {"none", Partitions::none}};
const Words<Shares> kShares = {{"auto", Shares::automatic}, {"on", Shares::on}, {"off", Shares::off}};
const Words<UltraServer> kUltraServer = {{"devices", UltraServer::devices}, {"node", UltraServer::node}};

// `members`: pointers that lead from Options to the value, as in &Options::dra, &DraOptions::pool_name.
template <typename... Member>
Set text(Member... members) {
  return [=](Options& options, const std::string& text) -> Result<void> {
    (options.*....*members) = text;
    return {};
  };
}

// `parse`: from text to Result<value>.
template <typename Parse, typename... Member>
Set parsed(Parse parse, Member... members) {
  return [=](Options& options, const std::string& text) -> Result<void> {
    TRY_ASSIGN((options.*....*members), parse(text));
    return {};
  };
}

// `check`: from text to Result<void>.
template <typename Check, typename... Member>
Set checked(Check check, Member... members) {
  return [=](Options& options, const std::string& text) -> Result<void> {
    TRY(check(text));
    (options.*....*members) = text;
    return {};
  };
}

template <typename Value, typename... Member>
Set one_of(const Words<Value>& words, Member... members) {
  return [=](Options& options, const std::string& text) -> Result<void> {
    std::string names;
    for (const auto& [name, value] : words) {
      names += (names.empty() ? "" : ",") + name;
      if (name != text) continue;
      (options.*....*members) = value;
      return {};
    }
    return fail(ErrorCode::invalid_argument, text + " not in {" + names + "}");
  };
}

using Switch = std::function<bool&(Options&)>;

template <typename... Member>
Switch on(Member... members) {
  return [=](Options& options) -> bool& { return (options.*....*members); };
}

Error refusal(std::string_view text, const char* why) {
  return make_error(ErrorCode::invalid_argument, "\"" + printable(text) + "\" " + why);
}

// ---- Values of single options

// As the API server requires of a driver's name (CSIDriver.metadata.name): RFC 1123, at most 63 bytes.
Result<void> check_driver_name(const std::string& text) {
  constexpr std::size_t kMostBytes = 63;
  if (text.size() <= kMostBytes && kube::check_node_name(text)) return {};
  return fail(refusal(text,
                      "is not a driver name: use at most 63 bytes of lower case letters, digits and '-' in parts "
                      "joined by '.', such as neuron.aws.com"));
}

Result<void> check_pool_name(const std::string& text) {
  constexpr std::size_t kMostBytes = 253;
  const auto parts = split(text, '/');
  const bool is_pool = !parts.empty() && text.size() <= kMostBytes &&
                       std::ranges::all_of(parts, [](auto part) { return kube::check_node_name(part).has_value(); });
  if (is_pool) return {};
  return fail(refusal(text, "is not a pool name: use a node name, or several joined by '/'"));
}

Result<void> check_pod_uid(const std::string& text) {
  constexpr std::size_t kMostBytes = 64;
  const auto in_uid = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; };
  if (text.size() <= kMostBytes && std::ranges::all_of(text, in_uid)) return {};
  return fail(refusal(text, "is not a pod uid: use at most 64 letters, digits and '-'"));
}

Result<std::optional<ListenAddress>> parse_metrics_address(const std::string& text) {
  if (text == "off") return std::optional<ListenAddress>();
  TRY_ASSIGN(ListenAddress address, parse_listen_address(text));
  return std::optional(std::move(address));
}

Result<int> parse_unhealthy_devices(const std::string& text) {
  constexpr int kMostDevices = 64;  // as devices are numbered
  int number = 0;
  if (CLI::detail::lexical_cast(text, number) && number >= 1 && number <= kMostDevices) return number;
  return fail(ErrorCode::invalid_argument, "Value " + text + " not in range 1 to 64");
}

Result<ReportForm> parse_report_form(const std::string& text) {
  if (text == "text" || text == "json") return text == "text" ? ReportForm::text : ReportForm::json;
  return fail(ErrorCode::invalid_argument, "`" + printable(text) + "' is neither text nor json");
}

Result<std::optional<int>> parse_lnc(const std::string& text) {
  if (text == "1" || text == "2") return std::optional(text == "1" ? 1 : 2);
  return fail(refusal(text, "is neither 1 nor 2"));
}

// As drivers print theirs: "2.30.2.0"; bounded by what a slice takes.
Result<void> check_driver_version(const std::string& text) {
  constexpr std::size_t kMostBytes = 64;
  if (is_qualified_part(text, kMostBytes)) return {};
  return fail(refusal(text, "is not a driver version such as 2.30.2.0"));
}

Result<void> set_core_devices(Options& options, const std::string& text) {
  TRY_ASSIGN(options.offer.core_devices, core::parse_core_devices(text));
  options.offer.core_devices_said = true;
  return {};
}

Result<void> set_dra_server(Options& options, const std::string& text) {
  TRY_ASSIGN(options.dra.layout, plugin::dra::layout_for(text));
  options.dra.server = text;
  return {};
}

Result<void> set_host_path_prefix(Options& options, const std::string& text) {
  options.host_path_prefix = text;
  options.host_path_prefix_set = true;
  return {};
}

Result<void> set_kubelet_dir(Options& options, const std::string& text) {
  options.kubelet_dir = text;
  options.kubelet_dir_set = true;
  return {};
}

// ---- The table

constexpr unsigned bit(Command command) {
  return 1U << static_cast<unsigned>(command);
}
constexpr unsigned kRun = bit(Command::run);
constexpr unsigned kCheck = bit(Command::check);
constexpr unsigned kWithdraw = bit(Command::withdraw);
constexpr unsigned kExplain = bit(Command::explain);
constexpr unsigned kCatalogue = bit(Command::catalogue);

struct Option {
  unsigned commands;  // kRun | …
  std::string name;   // "--root", "-o,--output"; without dashes: a positional argument, which is required
  std::string type;   // of the value; "" for a switch
  std::string value;  // default as --help shows it; "" = none
  std::string help;
  std::variant<Set, Switch> target;
};

// In the order of --help of each command.
const std::vector<Option> kOptions = {
    {kExplain, "pod", "NAMESPACE/NAME", "", "The pod; without a namespace the only one\nof that name on this node",
     text(&Options::pod)},
    {kRun, "--mode", "MODE", "device-plugin",
     "How devices are offered: device-plugin, or dra\nfor claims; one per node", one_of(kModes, &Options::mode)},
    {kRun, "--root", "DIR", "/", "Directory with the machine's sys, proc, dev", text(&Options::root)},
    {kCheck | kExplain, "--root", "DIR", "/", "Directory with the machine's sys, proc, dev; or\nan archive of it",
     text(&Options::root)},
    {kRun, "--kubelet-dir", "DIR", "/var/lib/kubelet", "The kubelet's directory", Set(set_kubelet_dir)},
    {kCheck, "--kubelet-dir", "DIR", "/var/lib/kubelet",
     "The kubelet's directory; with another root it is\nexamined only when given here", Set(set_kubelet_dir)},
    {kExplain, "--kubelet-dir", "DIR", "/var/lib/kubelet", "The kubelet's directory; required with another\nroot",
     Set(set_kubelet_dir)},
    {kRun, "--host-path-prefix", "DIR", "",
     "Prefix of /dev/... in host paths of allocated\ndevice nodes (default: the root)", Set(set_host_path_prefix)},
    {kRun, "--core-numbering", "HOW", "container",
     "Numbering of NEURON_RT_VISIBLE_CORES: from 0 in\neach container, or the host's",
     one_of(kCoreNumberings, &Options::core_numbering)},
    {kRun | kCatalogue, "--neurondevice", "", "", "Also advertise aws.amazon.com/neurondevice",
     on(&Options::neurondevice)},
    {kRun | kCatalogue, "--resources", "LIST", "",
     "Resources to register: neuron, neuroncore,\nneurondevice, efa (default: all that the node\nhas, without "
     "neurondevice)",
     parsed(core::parse_resource_list, &Options::offer, &OfferChoice::resources)},
    {kRun | kCatalogue, "--core-devices", "LIST", "",
     "Devices offered only as cores, such as 0-3,8; all\nothers only whole; or all, none, off (default:\nevery device "
     "both ways)",
     Set(set_core_devices)},
    {kRun, "--node-groups", "FILE", "", "JSON file with --resources and --core-devices\nfor kinds of nodes",
     text(&Options::node_groups)},
    {kRun, "--node-name", "NAME", "",
     "This node's name, for --node-groups, --mode dra,\n--node-status and --honor-placement",
     text(&Options::node_name)},
    {kWithdraw, "--node-name", "NAME", "", "The node whose labels and conditions are removed",
     text(&Options::node_name)},
    {kCatalogue, "--node-name", "NAME", "", "The node in the slices (default: the type's name)",
     text(&Options::node_name)},
    {kCatalogue, "--lnc", "1|2", "", "Physical cores per logical core (default: the\nfamily's)",
     parsed(parse_lnc, &Options::lnc)},
    {kCatalogue, "--driver-version", "VERSION", "", "The Neuron driver in the slices",
     checked(check_driver_version, &Options::driver_version)},
    {kRun, "--cdi", "", "", "Also answer with CDI names, and write their specs", on(&Options::cdi)},
    {kRun, "--cdi-dir", "DIR", "/var/run/cdi", "Directory of the CDI specs (--cdi and DRA mode)",
     text(&Options::cdi_dir)},
    {kCheck, "--cdi-dir", "DIR", "", "Directory of the CDI specs of claims\n(default: var/run/cdi of the root)",
     text(&Options::claims_cdi_dir)},
    {kRun, "--take-over", "", "", "Where another instance serves the node, wait for\nits end instead of exiting",
     on(&Options::take_over)},
    {kRun, "--honor-placement", "WORD", "off",
     "Prefer the devices or cores that a scheduler\nextender has written on the pod: on or off",
     one_of(kOnOff, &Options::honor_placement)},
    {kRun, "--scan-interval", "TIME", "5s", "Time between two scans of the machine",
     parsed(parse_duration, &Options::scan_interval)},
    {kRun, "--pod-resources-interval", "TIME", "10s", "Longest time between two PodResources queries\nto the kubelet",
     parsed(parse_duration, &Options::pod_resources_interval)},
    {kRun, "--kernel-log", "on|off", "off", "Also use hardware errors in the kernel log for\nhealth; needs CAP_SYSLOG",
     one_of(kKernelLogUses, &Options::kernel_log)},
    {kRun, "--metrics-address", "HOST:PORT", "off",
     "HTTP address of /healthz, /readyz and /metrics,\nsuch as :8000, 127.0.0.1:8000, [::1]:8000; or off",
     parsed(parse_metrics_address, &Options::metrics_address)},
    {kRun, "--metrics-tls-cert", "FILE", "",
     "Serve over TLS with the certificate in this PEM\nfile, reloaded when it changes",
     text(&Options::metrics_tls_cert)},
    {kRun, "--metrics-tls-key", "FILE", "", "The certificate's key, also reloaded", text(&Options::metrics_tls_key)},
    {kRun, "--node-document", "on|off", "on",
     "Answer /node on that address too: the node as\nJSON, with the names of pods",
     one_of(kOnOff, &Options::node_document)},
    {kRun, "--node-status", "WORD", "off",
     "Write labels, conditions and events of this node\nto the API server: on or off",
     one_of(kOnOff, &Options::node_status, &NodeStatus::enabled)},
    {kRun, "--accelerated-hardware-ready", "", "",
     "Also write AcceleratedHardwareReady, unless\nanother writes it; with --node-status on",
     on(&Options::node_status, &NodeStatus::report, &status::ReportSettings::hardware_ready)},
    {kRun, "--unhealthy-devices-for-node", "N", "",
     "Number of unhealthy devices from which the node\ncounts as unhealthy (default: half of them)",
     parsed(parse_unhealthy_devices, &Options::node_status, &NodeStatus::report,
            &status::ReportSettings::unhealthy_devices)},
    {kRun, "--startup-taint", "TAINT", "",
     "Taint of this node to remove once its resources\nare registered; with --node-status on",
     parsed(status::parse_startup_taint, &Options::node_status, &NodeStatus::startup_taint)},
    {kCheck, "--mode", "MODE", "device-plugin",
     "Intended mode of the node; dra: also check what\nclaims need (automatic where their driver ran)",
     one_of(kModes, &Options::intended_mode)},
    {kRun, "--dra-claim-status", "WORD", "off", "Write what each prepared claim has to its\nstatus.devices: on or off",
     one_of(kOnOff, &Options::dra, &DraOptions::claim_status)},
    {kRun | kCheck | kExplain | kCatalogue, "--dra-driver-name", "NAME", "neuron.aws.com", "Name of the claim driver",
     checked(check_driver_name, &Options::dra, &DraOptions::pool, &PoolOptions::driver)},
    {kRun | kCatalogue, "--dra-partitions", "WHAT", "none",
     "Offered besides whole devices: none, cores,\ngroups, or all; both slow the scheduler",
     one_of(kPartitions, &Options::dra, &DraOptions::pool, &PoolOptions::partitions)},
    {kRun, "--dra-pool", "NAME", "", "Name of the pool (default: the node's)",
     checked(check_pool_name, &Options::dra, &DraOptions::pool_name)},
    {kRun | kCatalogue, "--dra-shares", "auto|on|off", "auto",
     "Let claims share a device by its cores; auto:\nfrom Kubernetes 1.37; not with --dra-partitions",
     one_of(kShares, &Options::dra, &DraOptions::pool, &PoolOptions::shares)},
    {kRun, "--dra-taint-effect", "EFFECT", "NoSchedule",
     "Taint effect of an unhealthy device:\nNoSchedule, NoExecute, or none",
     one_of(kTaintEffects, &Options::dra, &DraOptions::pool, &PoolOptions::taint_effect)},
    {kRun | kCatalogue, "--dra-ultraserver", "HOW", "node",
     "How a node of an UltraServer is offered: as one\ndevice (node), or as its devices",
     one_of(kUltraServer, &Options::dra, &DraOptions::pool, &PoolOptions::ultraserver)},
    {kRun, "--dra-server", "VERSION", "",
     "With --once: print the slices for a server of this\nversion; other gates follow, separated by commas",
     Set(set_dra_server)},
    {kCatalogue, "--dra-server", "VERSION", "",
     "Print the slices for a server of this version;\nother gates follow, separated by commas", Set(set_dra_server)},
    {kRun, "--pod-uid", "UID", "", "Uid of this pod, which lets its successor run\nbeside it",
     checked(check_pod_uid, &Options::dra, &DraOptions::pod_uid)},
    {kRun | kWithdraw, "--api-server", "URL", "",
     "The API server, https://HOST:PORT (default:\nthat of the pod's cluster)",
     text(&Options::api, &kube::ApiFlags::server)},
    {kRun | kWithdraw, "--api-token-file", "FILE", "",
     "File with the token for the API server\n(default: of the pod's service account)",
     text(&Options::api, &kube::ApiFlags::token_file)},
    {kRun | kWithdraw, "--api-ca-file", "FILE", "",
     "File with the CA certificates of the API server\n(default: of the pod's service account)",
     text(&Options::api, &kube::ApiFlags::ca_file)},
    {kRun, "--log-level", "TEXT:{debug,info,warn,error}", "info", "Least severe message to log",
     one_of(kLogLevels, &Options::log_level)},
    {kRun, "--once", "", "", "Print what would be advertised, then exit", on(&Options::once)},
    {kRun, "--check-config", "", "", "Print the effective options, then exit", on(&Options::check_config)},
    {kCheck, "--claim", "FILE", "",
     "Instead of this node check the claims and\ntemplates in this YAML or JSON file; - for\nstandard input",
     text(&Options::claim)},
    {kCheck, "--output", "FORM", "text", "Format of the findings: text or json",
     parsed(parse_report_form, &Options::output)},
    {kExplain, "--output", "FORM", "text", "Format of the answer: text or json",
     parsed(parse_report_form, &Options::output)},
    {kCatalogue, "-o,--output", "FORM", "text",
     "Format: text, json, yaml, slices (ResourceSlices),\noverlays (NodeOverlays for Karpenter), tags "
     "(for\ncluster-autoscaler)",
     one_of(kCatalogueForms, &Options::output)},
    {kCheck, "--timeout", "TIME", "10s", "Time limit of the check; half of it is for\nlibfabric",
     parsed(parse_duration, &Options::timeout)},
    {kExplain, "--timeout", "TIME", "10s", "Time limit; a quarter of it for each query to the\nkubelet",
     parsed(parse_duration, &Options::timeout)},
    {kCheck, "--no-fabric", "", "", "Do not query libfabric", on(&Options::no_fabric)},
};

bool is_option(const std::string& name) {
  return name.starts_with('-');
}

// The environment variable of an option: NEURON_AGENT_ and its name, except for two that the pod's fields give.
std::string variable_of(const std::string& names) {
  const std::string name = names.substr(names.rfind(',') + 1);
  if (!is_option(name) || name == "--once" || name == "--check-config" || name == "--claim") return "";
  if (name == "--node-name") return "NODE_NAME";
  if (name == "--pod-uid") return "POD_UID";
  std::string variable = "NEURON_AGENT_" + name.substr(2);
  std::transform(variable.begin(), variable.end(), variable.begin(),
                 [](unsigned char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
  return variable;
}

template <typename Value>
std::string word_in(const Words<Value>& words, Value value) {
  const auto found = std::ranges::find_if(words, [&](const auto& one) { return one.second == value; });
  return found == words.end() ? "" : found->first;
}

}  // namespace

void add_options(CLI::App& app, Command command, Options& options) {
  if (command == Command::catalogue) {
    app.add_option("type", options.types, "Instance types (default: all)")->type_name("TYPE");
  }
  for (const Option& row : kOptions) {
    if ((row.commands & bit(command)) == 0) continue;
    CLI::Option* added = nullptr;
    if (const auto* const is_on = std::get_if<Switch>(&row.target)) {
      added = app.add_flag(row.name, (*is_on)(options), row.help);
    } else {
      const auto set = [&options, &row](const std::string& text) {
        const auto done = std::get<Set>(row.target)(options, text);
        if (!done) throw CLI::ValidationError(row.name, done.error().message);
      };
      added = app.add_option_function<std::string>(row.name, set, row.help)->type_name(row.type);
    }
    if (!row.value.empty()) added->default_str(row.value);
    added->envname(variable_of(row.name));
    added->required(!is_option(row.name) || (command == Command::withdraw && row.name == "--node-name"));
  }
}

std::string word_of(Partitions value) {
  return word_in(kPartitions, value);
}

std::string word_of(Shares value) {
  return word_in(kShares, value);
}

std::string word_of(UltraServer value) {
  return word_in(kUltraServer, value);
}

}  // namespace neuron::agent
