#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/kubectl-neuron/effort.h"
#include "tools/kubectl-neuron/fit.h"
#include "tools/kubectl-neuron/selector.h"

// The scheduler's choice of devices for claims on one node: first fit in the order of pools and devices, with
// backtracking (docs/reference/dra.md). Pure.
namespace neuron::fleet {

struct WantedClaim {
  std::string name;  // in the pod's spec, or the resource
  std::vector<ClaimRequest> requests;
  std::vector<ClaimConstraint> constraints;
};

// A device of the node's pools with what claims have of it.
struct Stock {
  const Pool* pool = nullptr;
  const SliceDevice* device = nullptr;
  bool held = false;                             // by a claim that does not share it
  std::map<std::string, std::int64_t> consumed;  // capacities, by claims that share it
  std::vector<std::string> holders;              // "namespace/pod", or the claim's name where no pod has it
};

struct Stocks {
  std::vector<Stock> devices;
  // Remaining counters: position of the pool's first device, set, counter.
  std::map<const Pool*, std::map<std::string, std::map<std::string, std::int64_t>>> counters;
};
// `state` has to outlive it. Devices of incomplete pools are in it.
[[nodiscard]] Stocks stocks_of(const NodeState& state);

// Whether one device meets one request while nothing else is chosen.
enum class Fitness : std::uint8_t { free, other, unknown, held, tainted, counters, capacity, incomplete };

struct Rated {
  Fitness fitness = Fitness::other;
  std::string part;  // of the expression that is false or unknown, or the taint
};

class DeviceSearch {
 public:
  DeviceSearch(const Fleet& fleet, const NodeState& state, std::vector<WantedClaim> claims, Effort* effort = nullptr);

  enum class Constraints { apply, ignore };
  enum class Outcome : std::uint8_t { found, none, gave_up };
  [[nodiscard]] Outcome run(Constraints constraints);
  // One request, or one alternative of it, alone.
  [[nodiscard]] Outcome run_alone(const ClaimRequest& request);
  [[nodiscard]] std::vector<ClaimResult> results() const;  // after `found`

  // After `none`: as many devices as a claim would have got that can have fewer; 0: that was not the reason.
  [[nodiscard]] std::int64_t over_limit() const { return over_limit_; }
  // After `none`: a constraint that is against one of all devices that were asked for; nullptr: that was not the
  // reason.
  [[nodiscard]] const ClaimConstraint* against_all() const { return against_all_; }

  // Parallel to stocks().devices.
  [[nodiscard]] std::vector<Rated> rate(const ClaimRequest& request);
  // The effort has ended during one of the calls: what they returned says nothing.
  [[nodiscard]] bool was_cut() const { return was_cut_; }
  [[nodiscard]] const Stocks& stocks() const { return stocks_; }
  [[nodiscard]] const std::vector<WantedClaim>& claims() const { return claims_; }

 private:
  struct Chosen {
    std::size_t claim = 0;
    std::size_t device = 0;
    std::string request;  // "name" or "name/alternative"
    const ClaimRequest* wish = nullptr;
  };
  static constexpr int kMostSteps = 300'000;

  [[nodiscard]] std::int64_t size_of(const ClaimRequest& wish);    // devices
  [[nodiscard]] std::int64_t excess_of(const WantedClaim& claim);  // its fewest devices, where above the limit; else 0
  // Whether a request alone finds too few devices: then all combinations of the others would be tried in vain.
  [[nodiscard]] bool is_short();
  [[nodiscard]] bool is_step_too_many();
  [[nodiscard]] bool is_late();  // asks the effort
  void begin(Constraints constraints);
  [[nodiscard]] Outcome ended(bool found) const;
  bool next_request(std::size_t claim, std::size_t request);
  bool first_of(std::size_t claim, std::size_t request, const ClaimRequest& wish);
  bool fill(std::size_t claim, std::size_t request, const ClaimRequest& wish, const std::string& name);
  bool choose(std::size_t claim, std::size_t request, const Chosen& kind, std::int64_t missing, std::size_t start);
  bool take_all(std::size_t claim, std::size_t request, const Chosen& kind);
  [[nodiscard]] bool is_usable(const Chosen& one);  // but for constraints
  void take(const Chosen& one);
  void give_back();
  [[nodiscard]] const ClaimConstraint* broken_by(const Chosen& one) const;  // nullptr: none
  [[nodiscard]] const std::vector<SelectorAnswer>& matches(const ClaimRequest& wish);
  // The devices that allocationMode All means: what is free while nothing is chosen does not count, capacity does.
  [[nodiscard]] const std::vector<std::size_t>& members(const ClaimRequest& wish);
  [[nodiscard]] Fitness state_of(const ClaimRequest& wish, const Stock& stock) const;
  void note_distinct(const Chosen& one, bool is_taken);
  void change_counters(const Stock& stock, std::int64_t sign);

  const Fleet& fleet_;
  Stocks stocks_;
  std::vector<WantedClaim> claims_;
  Effort* effort_;
  Constraints constraints_ = Constraints::apply;
  std::vector<Chosen> chosen_;
  // The value of the device taken last, for each distinctAttribute and request: the scheduler compares a further device
  // with these alone, and after it gives one back the request has none (constraint.go of 1.34 to 1.37).
  std::map<std::pair<const ClaimConstraint*, std::string>, const AttributeValue*> distinct_;
  std::map<const ClaimRequest*, std::vector<SelectorAnswer>> matches_;
  std::map<const ClaimRequest*, std::vector<std::size_t>> members_;
  int steps_ = 0;
  bool was_cut_ = false;
  // Both end the search, the first one up to the next alternative (firstAvailable).
  std::int64_t over_limit_ = 0;
  const ClaimConstraint* against_all_ = nullptr;
};

// A request's consumption of each capacity of a shared device, its own or all of it; nullopt: it asks for one that the
// device lacks, or a quantity is not understood. For a device that is not shared: {} where it is large enough.
[[nodiscard]] std::optional<std::map<std::string, std::int64_t>> consumption(const ClaimRequest& wish, const Pool& pool,
                                                                             const SliceDevice& device);

// Whether a device has left what a request consumes of it; nullopt: as consumption().
[[nodiscard]] std::optional<bool> has_capacity(const ClaimRequest& wish, const Stock& stock);

// A quantity of a capacity or counter; 0 where the text is none, or negative.
[[nodiscard]] std::int64_t amount_of(const std::string& text);
// Cores that no claim has, of a device that has them as a capacity.
[[nodiscard]] std::int64_t cores_left(const Stock& stock);

}  // namespace neuron::fleet
