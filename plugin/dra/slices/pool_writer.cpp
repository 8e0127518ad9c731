#include "plugin/dra/slices/pool_writer.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>
#include <utility>

#include "agent/base/parse.h"

namespace neuron::plugin::dra {
namespace {

bool has_taints(const SliceContent& content) {
  return std::any_of(content.devices.begin(), content.devices.end(), [](const auto& d) { return !d.taints.empty(); });
}

bool has_counters(const SliceContent& content) {
  return !content.counter_sets.empty() ||
         std::any_of(content.devices.begin(), content.devices.end(), [](const auto& d) { return !d.consumes.empty(); });
}

// 8 hexadecimal digits that nothing predicts.
std::string random_salt() {
  return fmt::format("{:08x}", std::random_device{}());
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

void Gate::take(bool is_open, SteadyTime now) {
  open.take(is_open, now);
  asked = now;
  recheck = false;
  if (!is_open) closed_at = now;
}

bool Gate::is_due_again(SteadyTime now) const {
  if (!is_closed()) return false;
  if (open.is_rising()) return now - asked >= SteadyAnswer<bool>::kApart;
  return recheck || now - closed_at >= PoolWriter::kGatesAge;
}

Result<bool> PoolWriter::look_at_server() {
  const SteadyTime now = clock_.now();
  if (server_ && !identity_.node.uid.empty() && now - facts_from_ < kFactsAge) return false;
  TRY_ASSIGN(const kube::ServerVersion server, kube::server_version(api_));
  TRY_ASSIGN(const SliceShape newest, shape_for(server));
  const std::string uid_before = identity_.node.uid;
  const SliceShape shape_before = shape();
  TRY(ask_for_node());
  facts_from_ = now;
  if (server_ != server) counters_.recheck = taints_.recheck = true;
  const bool is_first = !server_;
  server_ = server;
  take_shape(newest, now);
  return is_first || uid_before != identity_.node.uid || shape_before != shape() ||
         (shape() != SliceShape::plain && counters_.is_due_again(now)) || taints_.is_due_again(now);
}

void PoolWriter::take_shape(SliceShape newest, SteadyTime now) {
  const SliceShape before = shape();
  const bool was_rising = shape_.is_rising();
  shape_.take(newest, now);
  if (before != SliceShape::plain && shape() == SliceShape::plain) {
    spdlog::warn("older API server answered, slices published without cores and groups version={}", server_->text());
  } else if (shape_.is_rising() && !was_rising) {
    spdlog::info("newer API server answered, cores and groups pending version={} answers={} minutes={}",
                 server_->text(), SteadyAnswer<SliceShape>::kAnswers, SteadyAnswer<SliceShape>::kTime.count());
  }
}

Result<void> PoolWriter::ask_for_node() {
  TRY_ASSIGN(const NodeFacts node, calls_.node(identity_.node.name));
  if (node.kubelet) TRY(check_kubelet(*node.kubelet));
  identity_.node.uid = node.uid;
  return {};
}

LayoutOptions PoolWriter::options() const {
  return {counters_.is_closed() ? SliceShape::plain : shape(), !taints_.is_closed()};
}

// By a dry run. nullopt: it takes no such content or cannot be asked, and `why_not` says why. Errors: of the call,
// which says nothing about the content.
Result<std::optional<SliceContent>> PoolWriter::would_store(const SliceContent& content, std::string& why_not) {
  constexpr std::size_t kNoSlice = 0xfffff;                                // a number that no slice has
  constexpr std::string_view kWithoutDryRun = "does not support dry run";  // of an admission webhook
  std::vector<Slice> slices = whole_slices({content}, identity_);
  PoolIdentity other = identity_;
  other.salt = random_salt();  // a name that no object has
  slices.front().name = slice_name(kNoSlice, other);
  auto answer = calls_.try_create(slices.front());
  if (answer) return std::optional(std::move(answer->content));
  const Error& error = answer.error();
  if (error.code != ErrorCode::invalid_argument && error.message.find(kWithoutDryRun) == std::string::npos) {
    return fail(std::move(answer).error().with_context("dry run of a ResourceSlice"));
  }
  why_not = error.message;
  return std::optional<SliceContent>();
}

// Asks what would be stored of the first slice, which has the counters, before overlapping devices are offered.
Result<void> PoolWriter::ask_for_counters(const Pool& pool) {
  const SteadyTime now = clock_.now();
  const bool is_due =
      !counters_.open.value() || counters_.is_due_again(now) || (counters_.recheck && !counters_.is_closed());
  if (shape() == SliceShape::plain || pool.counters.empty() || !is_due) return {};
  const Layout layout = lay_out(pool, {shape(), true});
  if (layout.slices.empty() || !has_counters(layout.slices.front())) return {};
  const SliceContent& wanted = layout.slices.front();
  std::string why = "the API server drops counters (feature gate DRAPartitionableDevices is off)";
  const bool was_closed = counters_.is_closed();
  const auto stored = would_store(wanted, why);
  if (!stored && was_closed) return {};  // slices stay as they are; asked again later
  TRY(stored);
  counters_.take(*stored && (*stored)->counter_sets == wanted.counter_sets, now);
  if (counters_.is_closed() && !was_closed) spdlog::warn("slices published without cores and groups: {}", why);
  return {};
}

// Asks whether taints are kept again. No device that a scheduler could take is stored for it.
void PoolWriter::ask_for_taints() {
  const SteadyTime now = clock_.now();
  if (!taints_.is_due_again(now)) return;
  SliceContent probe;
  probe.devices.push_back({"probe"});
  probe.devices.back().taints.push_back({{identity_.driver + "/unhealthy", "probe", "NoSchedule"}});
  std::string why;
  const auto stored = would_store(probe, why);
  if (!stored) return;  // asked again later
  taints_.take(*stored && has_taints(**stored), now);
  if (!taints_.is_closed()) spdlog::info("API server stores taints, unhealthy devices tainted in the slices");
}

Result<Written> PoolWriter::write(const Pool& pool, Overwrite overwrite) {
  constexpr int kTries = 4;
  TRY(look_at_server());
  for (int attempt = 0; attempt < kTries; ++attempt) {
    TRY(ask_for_counters(pool));
    ask_for_taints();
    TRY_ASSIGN(const std::vector<Slice> stored, calls_.list(identity_.driver, identity_.node.name));
    const std::string salt = salt_in_use(stored, identity_);
    if (!salt.empty() && salt != taken_salt_) identity_.salt = salt;
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
  return fail(ErrorCode::unavailable, "ResourceSlices of this node changed during the write, retrying: " + conflict_);
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
    auto answer = calls_.create(slice);
    if (!answer && answer.error().code == ErrorCode::failed_precondition) TRY(avoid_foreign(slice.name));
    TRY_ASSIGN(const Outcome outcome, store(slice, std::move(answer), written));
    if (outcome != Outcome::done) return outcome;
  }
  return Outcome::done;
}

// After a name was refused as taken: where an object of another driver or node has it, which this driver may not
// delete, slices get other names. Else it is a slice of this node that came after the list.
Result<void> PoolWriter::avoid_foreign(const std::string& name) {
  const auto found = calls_.get(name);
  if (!found && found.error().code == ErrorCode::not_found) return {};
  TRY(found);
  if (found->driver == identity_.driver && found->node == identity_.node.name) return {};
  taken_salt_ = identity_.salt;
  identity_.salt = random_salt();
  spdlog::warn(
      "slice name taken by another ResourceSlice slice={} driver=\"{}\" node=\"{}\", publishing as {}; find who "
      "created that slice and delete it",
      name, printable(found->driver, 64), printable(found->node, 253), slice_name(0, identity_));
  return {};
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
    spdlog::warn("slice changed by an admission webhook or policy slice={}", wanted.name);
  }
  return Outcome::done;
}

// Remembers what the server does not keep, and says it once.
bool PoolWriter::was_stripped(const Slice& wanted, const Slice& stored) {
  const bool counters = has_counters(wanted.content) && !has_counters(stored.content);
  const bool taints = has_taints(wanted.content) && !has_taints(stored.content);
  const SteadyTime now = clock_.now();
  if (counters) {
    counters_.take(false, now);
    spdlog::warn(
        "slices published without cores and groups: the API server drops counters (feature gate "
        "DRAPartitionableDevices is off)");
  }
  if (taints) {
    taints_.take(false, now);
    spdlog::warn(
        "unhealthy devices left out of slices: the API server drops taints (feature gate DRADeviceTaints is off)");
  }
  return counters || taints;
}

}  // namespace neuron::plugin::dra
