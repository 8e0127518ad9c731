#include "plugin/dra/pool_writer.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "plugin/dra/server_rules.h"

namespace neuron::plugin::dra {
namespace {

bool has_taints(const SliceContent& content) {
  return std::any_of(content.devices.begin(), content.devices.end(), [](const auto& d) { return !d.taints.empty(); });
}

bool has_counters(const SliceContent& content) {
  return !content.counter_sets.empty() ||
         std::any_of(content.devices.begin(), content.devices.end(), [](const auto& d) { return !d.consumes.empty(); });
}

// Whether a plan writes over, or deletes, what is not as we left it.
bool overwrites(const SyncPlan& plan, const SliceVersions& own) {
  const auto is_foreign = [&](const Slice& slice) {
    const auto at = own.find(slice.name);
    return at == own.end() || at->second != slice.resource_version;
  };
  return std::any_of(plan.deletes.begin(), plan.deletes.end(), is_foreign) ||
         std::any_of(plan.updates.begin(), plan.updates.end(), is_foreign);
}

}  // namespace

Result<bool> PoolWriter::look_at_server() {
  const SteadyTime now = clock_.now();
  if (server_ && !identity_.node.uid.empty() && now - facts_from_ < kFactsAge) return false;
  TRY_ASSIGN(const kube::ServerVersion server, kube::server_version(api_));
  TRY_ASSIGN(const SliceShape shape, shape_for(server));
  const std::string uid_before = identity_.node.uid;
  TRY(ask_for_node());
  facts_from_ = now;
  const bool gates_are_old = (counters_ == false || !taints_) && now - gates_from_ >= kTryAgain;
  const bool is_new = server_ != server || uid_before != identity_.node.uid || gates_are_old;
  if (server_ != server || gates_are_old) {
    counters_.reset();
    taints_ = true;
  }
  server_ = server;
  shape_ = shape;
  return is_new;
}

Result<void> PoolWriter::ask_for_node() {
  TRY_ASSIGN(const NodeFacts node, calls_.node(identity_.node.name));
  if (node.kubelet) TRY(check_kubelet(*node.kubelet));
  identity_.node.uid = node.uid;
  return {};
}

LayoutOptions PoolWriter::options() const {
  return {counters_ == false ? SliceShape::plain : shape_, taints_};
}

// Asks what would be stored of the first slice, which has the counters, before overlapping devices are offered.
Result<void> PoolWriter::ask_for_gates(const Pool& pool) {
  if (shape_ == SliceShape::plain || pool.counters.empty() || counters_) return {};
  constexpr std::size_t kNoSlice = 0xfffff;  // a name that no slice has
  const Layout layout = lay_out(pool, {shape_, true});
  if (layout.slices.empty() || !has_counters(layout.slices.front())) return {};
  std::vector<Slice> slices = whole_slices({layout.slices.front()}, identity_);
  slices.front().name = slice_name(kNoSlice, identity_);
  const auto answer = calls_.try_create(slices.front());
  if (!answer && answer.error().code != ErrorCode::invalid_argument) return fail(answer.error());
  counters_ = answer && answer->content.counter_sets == slices.front().content.counter_sets;
  gates_from_ = clock_.now();
  if (*counters_) return {};
  const std::string why = answer ? "the API server keeps no counters (gate DRAPartitionableDevices)"
                                 : "the API server takes no counters: " + answer.error().message;
  spdlog::warn("slices are without cores and groups: {}", why);
  return {};
}

Result<Written> PoolWriter::write(const Pool& pool, Overwrite overwrite) {
  constexpr int kTries = 4;
  TRY(look_at_server());
  for (int attempt = 0; attempt < kTries; ++attempt) {
    TRY(ask_for_gates(pool));
    TRY_ASSIGN(const std::vector<Slice> stored, calls_.list(identity_.driver, identity_.node.name));
    Layout layout = lay_out(pool, options());
    SyncPlan plan = plan_sync(stored, layout.slices, identity_);
    if (!plan.creates.empty()) {
      const std::string uid = identity_.node.uid;
      TRY(ask_for_node());  // what names an older Node object is deleted by the garbage collector
      if (uid != identity_.node.uid) continue;
    }
    Written written;
    written.left_out = std::move(layout.left_out);
    for (const SliceContent& content : layout.slices) written.devices += content.devices.size();
    for (const Slice& slice : stored) {
      written.versions[slice.name] = slice.resource_version;
      written.generation = std::max(written.generation, slice.generation);
    }
    written.overwrote = overwrites(plan, own_);
    written.deferred = written.overwrote && overwrite == Overwrite::no;
    if (written.deferred) return written;
    TRY_ASSIGN(const Outcome outcome, apply(plan, written));
    if (outcome != Outcome::done) continue;
    own_ = written.versions;
    return written;
  }
  return fail(ErrorCode::unavailable, "somebody else was quicker to change ResourceSlices of this node: " + conflict_);
}

PoolWriter::Outcome PoolWriter::lost_race(const Error& error) {
  conflict_ = error.message;
  return Outcome::stale;
}

Result<PoolWriter::Outcome> PoolWriter::apply(const SyncPlan& plan, Written& written) {
  for (const Slice& slice : plan.deletes) {
    const auto gone = calls_.remove(slice);
    if (!gone && gone.error().code == ErrorCode::failed_precondition) return lost_race(gone.error());
    TRY(gone);
    written.versions.erase(slice.name);
    ++written.writes;
  }
  for (const Slice& slice : plan.updates) {
    auto answer = calls_.replace(slice);
    if (!answer && answer.error().code == ErrorCode::not_found) return lost_race(answer.error());
    TRY_ASSIGN(const Outcome outcome, store(slice, std::move(answer), written));
    if (outcome != Outcome::done) return outcome;
  }
  for (const Slice& slice : plan.creates) {
    TRY_ASSIGN(const Outcome outcome, store(slice, calls_.create(slice), written));
    if (outcome != Outcome::done) return outcome;
  }
  return Outcome::done;
}

Result<PoolWriter::Outcome> PoolWriter::store(const Slice& wanted, Result<Slice> answer, Written& written) {
  if (!answer && answer.error().code == ErrorCode::failed_precondition) return lost_race(answer.error());
  TRY(answer);
  ++written.writes;
  written.versions[wanted.name] = answer->resource_version;
  own_[wanted.name] = answer->resource_version;
  written.generation = wanted.generation;
  if (was_stripped(wanted, *answer)) return Outcome::stripped;
  if (!is_same(answer->content, wanted.content)) {
    spdlog::warn("slice={} is stored otherwise than it was sent; somebody changes it on its way", wanted.name);
  }
  return Outcome::done;
}

// Remembers what the server does not keep, and says it once.
bool PoolWriter::was_stripped(const Slice& wanted, const Slice& stored) {
  const bool counters = has_counters(wanted.content) && !has_counters(stored.content);
  const bool taints = has_taints(wanted.content) && !has_taints(stored.content);
  if (counters) {
    counters_ = false;
    spdlog::warn(
        "slices are without cores and groups: the API server keeps no counters (gate DRAPartitionableDevices)");
  }
  if (taints) {
    taints_ = false;
    spdlog::warn("unhealthy devices are left out of slices: the API server keeps no taints (gate DRADeviceTaints)");
  }
  if (counters || taints) gates_from_ = clock_.now();
  return counters || taints;
}

}  // namespace neuron::plugin::dra
