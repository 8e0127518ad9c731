#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "plugin/dra/slice_calls.h"
#include "plugin/dra/slice_layout.h"
#include "plugin/dra/slice_sync.h"

namespace neuron::plugin::dra {

// Names of slices and their resourceVersions.
using SliceVersions = std::map<std::string, std::string>;

// What a pool became. Passive data.
struct Written {
  SliceVersions versions;  // of all slices of the pool, as they are stored now
  std::size_t devices = 0;
  std::int64_t generation = 0;
  std::size_t writes = 0;             // creates, updates and deletes that it took
  bool overwrote = false;             // what somebody else had written
  bool deferred = false;              // nothing was written, since that would have been so and was not allowed
  std::vector<std::string> left_out;  // as of Layout
};

// Writes a pool to the API server, in the shape that this server takes, and looks at what came of it: a server whose
// gates are closed gives slices back without counters or taints, and gets a pool that does without. Before anything is
// offered that overlaps, the server is asked what it would store. One thread at a time; every call may block.
class PoolWriter {
 public:
  // What is kept of the server is asked anew after this time, and whether a closed gate is open now, and whether what
  // was invalid still is, after the second one.
  static constexpr std::chrono::minutes kFactsAge{4};
  static constexpr std::chrono::minutes kTryAgain{60};

  PoolWriter(kube::Api& api, std::string driver, std::string pool, std::string node, const Clock& clock)
      : calls_(api), api_(api), clock_(clock), identity_{std::move(driver), std::move(pool), {std::move(node), ""}} {}

  // Asks for the server's version and the Node object, unless that was not long ago. True: something is different from
  // before, so that a pool may have to be written anew. Errors: of the calls; failed_precondition (a server or kubelet
  // that is too old, in words).
  [[nodiscard]] Result<bool> look_at_server();

  enum class Overwrite { yes, no };
  // Errors: of the calls; invalid_argument: this data will never be taken.
  [[nodiscard]] Result<Written> write(const Pool& pool, Overwrite overwrite);

 private:
  enum class Outcome { done, stale, stripped };  // stale: somebody was quicker; stripped: the server drops fields

  [[nodiscard]] Result<void> ask_for_gates(const Pool& pool);
  [[nodiscard]] LayoutOptions options() const;
  [[nodiscard]] Result<void> ask_for_node();
  [[nodiscard]] Result<Outcome> apply(const SyncPlan& plan, Written& written);
  [[nodiscard]] Result<Outcome> store(const Slice& wanted, Result<Slice> answer, Written& written);
  [[nodiscard]] Outcome lost_race(const Error& error);
  [[nodiscard]] bool was_stripped(const Slice& wanted, const Slice& stored);

  SliceCalls calls_;
  kube::Api& api_;
  const Clock& clock_;
  PoolIdentity identity_;  // with the Node's uid, "" while it is not known

  std::optional<kube::ServerVersion> server_;
  SliceShape shape_ = SliceShape::plain;  // by the server's version
  SteadyTime facts_from_{};
  std::optional<bool> counters_;  // the server keeps them; nullopt: not known
  bool taints_ = true;            // the same
  SteadyTime gates_from_{};
  SliceVersions own_;     // of slices as we wrote them, or found them as we would have
  std::string conflict_;  // the newest one, as the server said it
};

}  // namespace neuron::plugin::dra
