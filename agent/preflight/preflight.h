#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/core/logical_cores.h"
#include "agent/model/host_scan.h"

// Findings of `neuron-agent check` on a node. Pure; docs/checks.md lists every code.
namespace neuron::preflight {

enum class Severity {
  error,    // workloads will fail, or units of this node cannot be used
  warning,  // works, but degraded or less reliably
  info,     // for information; no action unless it is unexpected
};

[[nodiscard]] std::string_view to_string(Severity severity);  // the enumerator's name

// A source and its value. A path of the machine is relative to the root.
struct Evidence {
  std::string path;
  std::string value;
  friend bool operator==(const Evidence&, const Evidence&) = default;
};

struct Finding {
  std::string code;  // stable, e.g. "driver_missing"
  Severity severity = Severity::error;
  std::string sentence;               // the problem, complete in itself
  std::vector<Evidence> evidence;     // at least one
  std::string fix;                    // remediation; "" when there is none
  std::vector<std::string> subjects;  // "neuron3", "rdmap16s25", a PCI address; empty: the node as a whole
  friend bool operator==(const Finding&, const Finding&) = default;
};

// The state of a file or directory.
enum class PathState { absent, present, unknown };

// An RDMA device other than an EFA interface.
struct ForeignRdma {
  std::string name;             // sys/class/infiniband/<name>
  std::string driver;           // sys/class/infiniband/<name>/device/driver; "" when it has none
  bool has_verbs_node = false;  // some sys/class/infiniband_verbs/uverbs<N>/ibdev names it
};

// A core with failed resets since the driver was loaded, or with an unreadable count of them.
struct FailedResets {
  int device = 0;           // N of neuron<N>
  int core = 0;             // M of neuron_core<M>
  std::uint64_t count = 0;  // neuron<N>/neuron_core<M>/stats/other_info/reset_fail_count/total
  std::string unread;       // why there is no count; "" when there is one
};

// opt/aws/neuron/logical_nc_config
struct LncFile {
  PathState state = PathState::absent;  // unknown: present but unreadable
  std::string text;                     // its beginning, printable
  std::string reason;                   // why it is not usable; "" when it is
  std::optional<int> value;             // the configured value
};

struct HugePages {
  std::optional<std::uint64_t> reserved_2m;    // sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
  std::optional<std::uint64_t> default_bytes;  // proc/meminfo "Hugepagesize"
};

// Content of the kubelet's directory.
struct KubeletFacts {
  std::string not_looked;  // why it was not read; "" when it was, and only then the rest is valid
  std::string directory;   // as given, e.g. "/var/lib/kubelet"
  PathState itself = PathState::unknown;
  PathState device_plugins = PathState::unknown;        // device-plugins/
  PathState kubelet_socket = PathState::unknown;        // device-plugins/kubelet.sock
  PathState pod_resources_socket = PathState::unknown;  // pod-resources/kubelet.sock
  std::vector<std::string> plugin_sockets;              // device-plugins/*.sock without kubelet.sock, sorted
  std::vector<std::string> verbs_takers;  // "resource pod uid/container" of foreign resources whose recorded
                                          // answer in kubelet_internal_checkpoint holds /dev/infiniband/uverbs
  core::NumberingEvidence numbering;      // of the core ids in the same file
  std::vector<int> listed_devices;        // last listed to the kubelet by neuron or neurondevice, ascending
  std::vector<int> listed_cores;          // the same by neuroncore: global core ids, ascending
};

// CDI in the container runtime's configuration.
struct CdiFacts {
  enum class State { unknown, on, off };
  State state = State::unknown;
  Evidence evidence;     // path is always set
  bool is_said = false;  // by the configuration; else it follows from its format
};

// Requirements of claims (dynamic resource allocation) on a node, and remains of both modes.
struct ClaimFacts {
  enum class SocketState { listening, dead, unknown };
  struct Socket {
    std::string path;
    SocketState state = SocketState::unknown;
  };
  // The lock that keeps one mode per node: its holder, `pid`, serves claims or is a device plugin.
  struct Lock {
    bool of_claims = false;
    std::string pid;
  };
  bool asked = false;                       // check --mode dra
  bool plugin_asked = false;                // check --mode device-plugin, explicitly
  std::optional<Lock> lock;                 // of device-plugins/; nullopt: no visible process holds it
  bool found = false;                       // plugins/<driver> exists; without `asked` and `found` the rest is void
  std::string driver;                       // "neuron.aws.com"
  std::string kubelet;                      // its directory, as given
  PathState registry = PathState::unknown;  // plugins_registry/
  std::string cdi_path = "var/run/cdi";     // directory of CDI files: below the root, or a path of this process
  PathState cdi_directory = PathState::unknown;  // of cdi_path
  bool cdi_read_only = false;                    // its file system, for this process
  std::vector<Socket> driver_sockets;            // of the driver, in both directories; by path
  std::vector<std::string> device_plugins;       // paths of listening sockets of neuron-agent or AWS's plugins; sorted
  bool config_read = false;                      // a configuration of the kubelet was read
  std::vector<Evidence> gates_off;               // where the kubelet's configuration disables a gate; value = the gate
  std::string kubelet_version;                   // "1.34.1-1.1", of the package; "" unknown
  PathState claims_file = PathState::unknown;    // plugins/<driver>/claims.json
  std::string claims_file_problem;               // why it is not usable; "" when usable or absent
  std::vector<std::string> prepared;             // uids in it, sorted
  std::vector<std::string> described;            // uids of claims with CDI files of the driver, sorted
};

// libfabric's answer, from a separate process.
struct FabricFacts {
  enum class State {
    not_tried,   // `message` says why
    answered,    // `interfaces` or `error_code` and `message`
    no_library,  // `message` is the loader's
    timed_out,   // the child was killed after `budget`
    died,        // the child was killed by `signal`
    failed,      // the child could not be started, or its output was malformed
  };
  State state = State::not_tried;
  std::string provider = "efa";
  std::string version;                  // of the library, "1.17"; "" unknown
  std::vector<std::string> interfaces;  // distinct NIC names, sorted
  int error_code = 0;                   // the negated result of fi_getinfo; 61 = no data available
  std::string message;
  std::vector<std::string> log;  // the library's last lines, printable
  int signal = 0;
  std::chrono::milliseconds budget{0};
};

// Facts of a check beyond the scan. Passive; gathered by host/preflight_facts.h.
struct PreflightFacts {
  bool own_dev = false;  // a live root whose dev/ is a container's own: missing device nodes prove nothing
  PathState neuron_class = PathState::unknown;   // sys/class/neuron_device
  PathState verbs_class = PathState::unknown;    // sys/class/infiniband_verbs
  PathState uverbs_module = PathState::unknown;  // sys/module/ib_uverbs
  std::optional<model::Family> pci_family;       // family of the Neuron functions on PCI, when they agree
  std::optional<int> online_cpus;                // sys/devices/system/cpu/online
  std::vector<ForeignRdma> foreign_rdma;         // by name
  std::vector<FailedResets> failed_resets;       // by device, then core; a count of 0 is left out
  LncFile lnc_file;
  HugePages huge_pages;
  KubeletFacts kubelet;
  CdiFacts cdi;
  ClaimFacts claims;
  FabricFacts fabric;
};

// All findings about a single scan, which this assesses (health::assess, without a memory of earlier ones): worst
// first, within one severity in a fixed order of subjects. Parts that could not be examined are one finding
// "not_checked" of severity info. The rules are in preflight/rules.h.
[[nodiscard]] std::vector<Finding> preflight(const model::HostScan& scan, const PreflightFacts& facts);

// "trn1.32xlarge, 16 devices, 8 EFA interfaces, driver 2.30.2.0"
[[nodiscard]] std::string describe_node(const model::HostScan& scan);

// The findings as text, wrapped at 80 columns: a block each, then a line of counts, or "nothing wrong: " and
// `examined`, as of describe_node.
[[nodiscard]] std::string preflight_text(const std::vector<Finding>& findings, const std::string& examined);

// Count of one severity.
[[nodiscard]] int count_severity(const std::vector<Finding>& findings, Severity severity);

}  // namespace neuron::preflight
