#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "plugin/dra/slices/server_rules.h"
#include "plugin/dra/slices/slice_calls.h"
#include "plugin/dra/slices/slice_layout.h"
#include "plugin/dra/slices/slice_sync.h"

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

// A feature gate, by what API servers store.
struct Gate {
  SteadyAnswer<bool> open{false};
  SteadyTime asked{};
  SteadyTime closed_at{};  // by the newest answer that says so
  bool recheck = false;    // the server is another one

  void take(bool is_open, SteadyTime now);
  [[nodiscard]] bool is_closed() const { return open.value() == false; }
  [[nodiscard]] bool is_due_again(SteadyTime now) const;  // closed, and to be asked again
};

// Writes a pool to the API server, in the shape that this server takes, and compares the answers: a server whose
// gates are closed gives slices back without counters or taints, and gets a pool that does without. Before anything is
// offered that overlaps, the server is asked what it would store. While servers of several versions answer, as during
// an update of the control plane, slices have the shape of the lowest (SteadyAnswer). Names that objects of another
// driver or node have are avoided. One thread at a time; every call may block.
class PoolWriter {
 public:
  // After these times: facts of the server are asked anew; it is asked whether a closed gate is open; what was invalid
  // is sent again.
  static constexpr std::chrono::minutes kFactsAge{4};
  static constexpr std::chrono::minutes kGatesAge{45};
  static constexpr std::chrono::minutes kTryAgain{60};

  PoolWriter(kube::Api& api, std::string driver, std::string pool, std::string node, const Clock& clock)
      : calls_(api), api_(api), clock_(clock), identity_{std::move(driver), std::move(pool), {std::move(node), ""}} {}

  // Asks for the server's version and the Node object, unless that was not long ago. True: something is different from
  // before, or a gate is to be asked again, so that a pool may have to be written anew. Errors: of the calls;
  // failed_precondition (a server or kubelet that is too old, in words).
  [[nodiscard]] Result<bool> look_at_server();

  enum class Overwrite { yes, no };
  // Errors: of the calls; invalid_argument: the server names a field that it does not take, and will not take later.
  [[nodiscard]] Result<Written> write(const Pool& pool, Overwrite overwrite);

 private:
  enum class Outcome { done, stale, stripped };  // stale: another writer was quicker; stripped: the server drops fields

  [[nodiscard]] Result<void> ask_for_counters(const Pool& pool);
  void ask_for_taints();
  [[nodiscard]] Result<std::optional<SliceContent>> would_store(const SliceContent& content, std::string& why_not);
  [[nodiscard]] SliceShape shape() const { return shape_.value().value_or(SliceShape::plain); }
  void take_shape(SliceShape newest, SteadyTime now);
  [[nodiscard]] LayoutOptions options() const;
  [[nodiscard]] Result<void> ask_for_node();
  [[nodiscard]] Result<Outcome> apply(const SyncPlan& plan, Written& written);
  [[nodiscard]] Result<Outcome> store(const Slice& wanted, Result<Slice> answer, Written& written);
  [[nodiscard]] Outcome lost_race(const Error& error);
  [[nodiscard]] Result<void> avoid_foreign(const std::string& name);
  [[nodiscard]] bool was_stripped(const Slice& wanted, const Slice& stored);

  SliceCalls calls_;
  kube::Api& api_;
  const Clock& clock_;
  PoolIdentity identity_;   // with the Node's uid, "" while it is not known
  std::string taken_salt_;  // of names that others have

  std::optional<kube::ServerVersion> server_;          // the newest answer
  SteadyAnswer<SliceShape> shape_{SliceShape::plain};  // by the servers' versions
  SteadyTime facts_from_{};
  Gate counters_;         // asked by a dry run before there are some
  Gate taints_;           // unknown counts as open: the answers to writes show it
  SliceVersions own_;     // of slices as we wrote them, or found them as we would have
  std::string conflict_;  // the newest one, as the server said it
};

}  // namespace neuron::plugin::dra
