#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/child_process.h"
#include "agent/base/result.h"
#include "agent/kube/api.h"
#include "tools/kubectl-neuron/fleet.h"
#include "tools/kubectl-neuron/waits.h"

// The answers of a cluster that a fleet is made of, read through kubectl or from a dump.
namespace neuron::fleet {

enum class Kind { nodes, pods, slices, claims, claim_templates, device_classes, events };
inline constexpr std::size_t kKinds = 7;
inline constexpr std::array<Kind, kKinds> kAllKinds = {
    Kind::nodes, Kind::pods, Kind::slices, Kind::claims, Kind::claim_templates, Kind::device_classes, Kind::events};

// The name in a path of the API and in a dump: "nodes", "resourceslices".
[[nodiscard]] std::string_view plural_of(Kind kind);

// The answer of a node's agent to GET /node, or why there is none.
struct AgentAnswer {
  std::string pod;        // "namespace/name" of the agent
  std::string body;       // JSON, foreign; "" with `missing`
  std::string missing;    // one sentence; "" with `body`
  std::string metrics{};  // what kept_metrics() (node_usage.h) left of GET /metrics; "": not asked for, or no answer
  std::optional<report::NodeReport> report{};  // of `body`, which is then ""
};

// Objects that are not understood, wholly or in part: how many, and place_of() (parse.h) the first. Passive data.
struct Lost {
  static constexpr std::size_t kKept = 4;
  std::size_t count = 0;
  std::vector<std::string> first;  // at most kKept
};

// The slices of all pages that parse_slices() has read. Passive data.
struct ParsedSlices {
  std::vector<Slice> slices;
  std::size_t seen = 0;  // objects
  Lost lost;
};

// In Documents::unknown, where a server is older than the API group: then lists of claims, slices and classes are none.
inline constexpr const char* kNoClaims = "the cluster does not serve resource.k8s.io: no claims";

// Passive data. All texts are foreign and bounded.
struct Documents {
  // By kind: lists as JSON objects {"items": […]}, a page each, without the fields that no command reads (kept_page).
  std::array<std::vector<std::string>, kKinds> lists;
  ParsedSlices parsed;                        // `lists` does not have these
  std::map<std::string, AgentAnswer> agents;  // by node name
  std::string read_at;                        // RFC 3339
  std::string default_namespace;              // of the context; "" unknown
  std::set<std::string> partial;              // plural_of() of lists of which some or all was not read
  std::vector<std::string> unknown;           // one sentence for each thing that was not read, and why

  [[nodiscard]] std::vector<std::string>& list(Kind kind) { return lists.at(static_cast<std::size_t>(kind)); }
  [[nodiscard]] const std::vector<std::string>& list(Kind kind) const {
    return lists.at(static_cast<std::size_t>(kind));
  }
};

// Puts the report in place of its text; where it is none, `missing` says so. Pure.
void parse_report(AgentAnswer& answer);

// Documents that a command needs beside nodes, pods, slices, claims and classes.
struct Wanted {
  bool agents = true;
  bool reports = false;  // agents' answers and slices parsed as they come, instead of their texts
  bool metrics = false;  // of each agent that has /node
  bool claim_templates = false;
  bool events = false;
  bool context = true;  // its namespace
};

// A fleet of what was read. Documents that make no sense, whole or in part, are left out; a sentence of
// Fleet::unknown says how many. Pure.
[[nodiscard]] Fleet make_fleet(Documents documents);

// The user's flags that kubectl is given as they are. Passive data.
struct ClusterFlags {
  std::string kubeconfig;
  std::string context;
  std::string cluster;
  std::string user;
  std::string as;
  std::vector<std::string> as_groups;
  std::string kube_namespace;  // -n

  [[nodiscard]] std::vector<std::string> words() const;  // without the namespace
};

// GETs of the API server. open_kubectl() gives the real one; a test has answers in memory.
class ClusterReader {
 public:
  virtual ~ClusterReader() = default;

  // The answer, also with a status of 400 and more. `call.method` is get. Errors: unavailable, deadline_exceeded,
  // data_corrupt, internal. Any thread; blocks up to `deadline`.
  [[nodiscard]] virtual Result<kube::ApiReply> get(const kube::ApiCall& call, std::chrono::milliseconds deadline) = 0;

  // The namespace of the user's context; "default" where it has none or it is not known. Any thread; blocks.
  [[nodiscard]] virtual std::string context_namespace() = 0;
};

// Called with the number of answers so far and of those expected; from one thread at a time.
using Progress = std::function<void(std::size_t done, std::size_t expected)>;

struct ReadLimits {
  std::chrono::milliseconds page{60'000};  // of a page of a list; the first may run a login program
  std::chrono::milliseconds agent{2000};   // of an agent that does not answer
  int at_once = 64;                        // calls; most are to agents, and each waits on its node
};

// All answers, read in parallel. Kinds that may not be read are in Documents::unknown; a namespaced one is then read in
// `own_namespace` alone, or that of the context where it is "". Errors: those of the first call, when neither a list of
// nodes nor one of pods came. Blocks up to a minute per page.
[[nodiscard]] Result<Documents> read_documents(ClusterReader& cluster, const std::string& own_namespace,
                                               const Wanted& wanted, const Progress& progress,
                                               const ReadLimits& limits = {});

// A page of a list: what is kept of it, and where the next begins. Passive data.
struct Page {
  std::string text;  // {"items":[…]}
  std::string next;  // for `continue`; "" on the last page
  std::size_t items = 0;
};

// The page in `body`, an API server's answer, with the fields that commands read, and no others: environment variables,
// annotations, names of volumes and managed fields of pods are in no document and no dump. Pure. Errors: data_corrupt.
[[nodiscard]] Result<Page> kept_page(Kind kind, std::string_view body);

// Adds the slices of a page, and returns it without its text; nothing where the page cannot be read whole. Pure.
// Errors: data_corrupt.
[[nodiscard]] Result<Page> parse_slices(std::string_view page, SliceFacts& facts, ParsedSlices& parsed);

// Why a run of kubectl failed, in a sentence: its last words, or that it had none.
[[nodiscard]] std::string failure_of(const ChildOutcome& kubectl);

// The path of the program `name` on PATH. Errors: not_found, with the remedy.
[[nodiscard]] Result<std::string> find_on_path(const std::string& name);

// Calls to the API server through kubectl. A child `kubectl proxy` serves them on a socket in a private directory, and
// ends with this process; where it cannot be started, each call runs `kubectl get --raw`. `waits` gets each command.
// Before any other thread. Errors: not_found (no kubectl on PATH).
[[nodiscard]] Result<std::unique_ptr<ClusterReader>> open_kubectl(const ClusterFlags& flags,
                                                                  std::shared_ptr<Waits> waits = nullptr);

}  // namespace neuron::fleet
