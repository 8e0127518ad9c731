#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/grant/grant.h"
#include "tools/neuron-sim/kubelet/pod.h"

namespace neuron::check {

// What every container can really use, read from the environment and the device nodes it was started with, by code of
// its own. Keeps rule 1 and 2 of the hardware rules (docs/resources.md#same-hardware). One thread.
class Truth {
 public:
  struct Container {
    std::string pod, uid, name;
    sim::ContainerKind kind = sim::ContainerKind::app;
    std::set<int> cores;                               // global core ids
    std::map<std::string, std::set<std::string>> ids;  // by resource
    bool excepted = false;   // the kubelet gave it ids that another container has, or has forgotten it: see Counts
    bool forgotten = false;  // by a restarted kubelet
  };
  struct Counts {
    std::uint64_t containers = 0;
    std::uint64_t double_given = 0;  // pairs that the kubelet itself gave one id of one resource
    std::uint64_t forgotten = 0;     // containers that a restarted kubelet no longer knows
  };

  // `host_numbering`: NEURON_RT_VISIBLE_CORES holds global numbers.
  Truth(grant::NodeUnitsPtr node, bool host_numbering) : node_(std::move(node)), host_numbering_(host_numbering) {}

  // Whether the answers for a container's resources must mean the same cores. After an admission that stalled they may
  // not (docs/adr/0006-admission-gate.md); then it counts as the user of the cores of all its ids.
  enum class Answers { one, may_differ };
  // The pod's containers start. A sentence when that breaks a rule.
  [[nodiscard]] std::optional<std::string> start(const sim::PodSpec& spec, const sim::PodResult& result,
                                                 Answers answers);
  // The kubelet passed these ids for `pod`, which it may still refuse: a running container of another pod that has one
  // of them was given away by the kubelet itself.
  void passed(const std::string& pod, const std::string& resource, const std::vector<std::string>& ids);
  void end(const std::string& pod);
  // A restarted kubelet knows only the ids in `known`.
  void keep_known(const std::vector<sim::PodView>& known);

  // Cores that `resource` must not offer: some container uses them, but not through this one.
  [[nodiscard]] std::set<int> blocked(model::Resource resource, bool with_excepted) const;
  // Cores of containers that a restarted kubelet no longer knows. An agent that restarts as well cannot learn of them.
  [[nodiscard]] std::set<int> forgotten() const;
  // Some container has this unit of the resource, also an init container that is over.
  [[nodiscard]] bool has(model::Resource resource, const std::string& id) const;
  // How a container with that core may be called in a refusal; empty when no container has it.
  [[nodiscard]] std::set<std::string> holders_of(int core) const;

  [[nodiscard]] const std::vector<Container>& containers() const { return containers_; }
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  [[nodiscard]] std::optional<std::string> decode(const sim::ContainerGrant& grant, Container& container) const;
  [[nodiscard]] std::optional<std::string> compare(Container& a, Container& b);

  grant::NodeUnitsPtr node_;
  bool host_numbering_;
  std::vector<Container> containers_;
  Counts counts_;
};

}  // namespace neuron::check
