#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "agent/base/parse.h"
#include "plugin/dra/slices/publisher.h"

namespace neuron::plugin::dra {
namespace {

using kube::ApiCall;
using kube::Method;

// ---- Calls. Errors: as Api::call and body_of(), but invalid_argument only where the server names a field of the
// object (422), and internal for other rejections of the request (400, 415); data_corrupt for an unexpected answer.

Result<std::string> body(kube::Api& api, const ApiCall& call) {
  constexpr int kInvalid = 422;
  TRY_ASSIGN(kube::ApiReply reply, api.call(call));
  const int status = reply.status;
  auto body = kube::body_of(std::move(reply), call);
  if (!body && body.error().code == ErrorCode::invalid_argument && status != kInvalid) {
    body.error().code = ErrorCode::internal;
  }
  return body;
}

std::string path_of(const std::string& name) {
  return std::string(kSlicesPath) + "/" + kube::percent_encoded(name);
}

// Gets, creates or replaces one slice, of any driver and node; returns the stored object.
Result<Slice> call_for_slice(kube::Api& api, const ApiCall& call) {
  TRY_ASSIGN(const std::string text, body(api, call));
  return parse_slice(text);
}

// All of a driver and node, as new as the server has them.
Result<std::vector<Slice>> list_slices(kube::Api& api, const std::string& driver, const std::string& node) {
  constexpr int kMaxPages = 16;
  const std::string selector = "spec.driver=" + driver + ",spec.nodeName=" + node;
  const std::string query = "fieldSelector=" + kube::percent_encoded(selector) + "&limit=100";
  std::vector<Slice> all;
  std::string next;
  for (int number = 0; number < kMaxPages; ++number) {
    const std::string token = next.empty() ? "" : "&continue=" + kube::percent_encoded(next);
    TRY_ASSIGN(const std::string text, body(api, {.path = kSlicesPath, .query = query + token}));
    TRY_ASSIGN(kube::ListPage page, parse_slices(text));
    for (Slice& slice : page.objects) {
      // A server that does not know the selector lists all slices.
      const bool is_listed = spec_text(slice, "driver") == driver && spec_text(slice, "nodeName") == node;
      if (is_listed) all.push_back(std::move(slice));
    }
    next = std::move(page.next);
    if (next.empty()) return all;
  }
  return fail(ErrorCode::data_corrupt, "the API server's list of ResourceSlices does not end");
}

// The object of that uid; a slice that is gone is no error.
Result<void> remove_slice(kube::Api& api, const Slice& slice) {
  const nlohmann::json options = {
      {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", slice.uid}}}};
  const auto done = body(api, {.method = Method::remove, .path = path_of(slice.name), .body = options.dump()});
  if (!done && done.error().code != ErrorCode::not_found) return fail(done.error());
  return {};
}

// ---- Plans

// 8 hexadecimal digits that nothing predicts.
std::string random_salt() {
  return fmt::format("{:08x}", std::random_device{}());
}

// Whether a plan updates or deletes slices that another writer has changed.
bool overwrites(const SyncPlan& plan, const SliceVersions& own) {
  const auto is_foreign = [&](const Slice& slice) {
    const auto at = own.find(slice.name);
    return at == own.end() || at->second != slice.resource_version;
  };
  return std::ranges::any_of(plan.deletes, is_foreign) || std::ranges::any_of(plan.updates, is_foreign);
}

// The lowest where slices differ; nullopt: no slice says it.
std::optional<ServerKind> servers_in(const std::vector<Slice>& stored, const PoolIdentity& identity) {
  std::optional<ServerKind> servers;
  for (const Slice& slice : stored) {
    if (pool_of(slice) != identity.pool) continue;
    const auto kind = parse_server_kind(made_for(slice, identity.driver));
    if (kind) servers = !servers || *servers == *kind ? *kind : ServerKind{};
  }
  return servers;
}

}  // namespace

void FeatureGate::take(bool is_open, SteadyTime now) {
  open.take(is_open, now);
  asked = now;
  recheck = false;
  if (!is_open) closed_at = now;
}

bool FeatureGate::is_due_again(SteadyTime now) const {
  if (!is_closed()) return false;
  if (open.is_rising()) return now - asked >= SteadyAnswer<bool>::kApart;
  return recheck || now - closed_at >= PoolWriter::kGatesAge;
}

Result<bool> PoolWriter::check_server() {
  const SteadyTime now = clock_.now();
  if (server_ && !identity_.node.uid.empty() && now - facts_from_ < kFactsAge) return false;
  TRY_ASSIGN(const kube::ServerVersion server, kube::server_version(api_));
  TRY_ASSIGN(const SliceShape newest, shape_for(server));
  const OwnerNode before = identity_.node;
  const SliceShape shape_before = shape();
  const bool waited_before = all_waits();
  TRY(read_node());
  facts_from_ = now;
  if (server_ != server) counters_.recheck = taints_.recheck = shares_.recheck = true;
  const bool is_first = !server_;
  server_ = server;
  take_shape(newest, now);
  all_waits_.take(dra::all_waits(server), now);
  return is_first || before.uid != identity_.node.uid || before.network_layers != identity_.node.network_layers ||
         shape_before != shape() || waited_before != all_waits() ||
         (shape() != SliceShape::plain && counters_.is_due_again(now)) || taints_.is_due_again(now) ||
         shares_.is_due_again(now);
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

// As the instance that wrote them would.
Result<void> PoolWriter::continue_from(const std::vector<Slice>& stored) {
  if (has_continued_ || !server_) return {};
  TRY_ASSIGN(const SliceShape newest, shape_for(*server_));
  has_continued_ = true;
  const auto servers = servers_in(stored, identity_);
  if (!servers) return {};
  const SteadyTime now = clock_.now();
  shape_ = SteadyAnswer<SliceShape>(SliceShape::plain);
  shape_.take(servers->shape, now);
  take_shape(newest, now);
  all_waits_ = SteadyAnswer<bool>(false);
  all_waits_.take(servers->all_waits, now);
  all_waits_.take(dra::all_waits(*server_), now);
  return {};
}

Result<void> PoolWriter::read_node() {
  const std::string& name = identity_.node.name;
  TRY_ASSIGN(const std::string text, body(api_, {.path = "/api/v1/nodes/" + kube::percent_encoded(name)}));
  TRY_ASSIGN(const nlohmann::json object, kube::parse_object(text, "the answer for node " + name));
  std::string uid = kube::text_of(object, {"metadata", "uid"});
  if (uid.empty()) return fail(ErrorCode::data_corrupt, "the API server returned node " + name + " without a uid");
  const auto kubelet = kube::parse_git_version(kube::text_of(object, {"status", "nodeInfo", "kubeletVersion"}));
  if (kubelet) TRY(check_kubelet(*kubelet));
  identity_.node.uid = std::move(uid);
  identity_.node.network_layers.clear();
  constexpr std::size_t kLongestLabel = 63;
  for (const std::string layer : {"1", "2", "3"}) {
    const std::string label = "topology.k8s.aws/network-node-layer-" + layer;
    const std::string value = kube::text_of(object, {"metadata", "labels", label.c_str()});
    if (value.size() <= kLongestLabel) identity_.node.network_layers["networkNodeLayer" + layer] = value;
  }
  return {};
}

// A slice under a name that no object has.
Slice PoolWriter::trial_slice(const SliceContent& content) const {
  constexpr std::size_t kNoSlice = 0xfffff;  // a number that no slice has
  PoolIdentity other = identity_;
  other.salt = random_salt();
  Slice slice = std::move(whole_slices({content}, identity_).front());
  slice.name = slice_name(kNoSlice, other);
  slice.json["metadata"]["name"] = slice.name;
  return slice;
}

// By a dry run. nullopt: the server rejects the content or cannot do a dry run, and `why_not` has the reason. Errors:
// of the call, which say nothing about the content.
Result<std::optional<Slice>> PoolWriter::would_store(const Slice& slice, std::string& why_not) {
  constexpr std::string_view kWithoutDryRun = "does not support dry run";  // of an admission webhook
  auto answer = call_for_slice(
      api_, {.method = Method::create, .path = kSlicesPath, .query = "dryRun=All", .body = slice_text(slice)});
  if (answer) return std::optional(*std::move(answer));
  const Error& error = answer.error();
  if (error.code != ErrorCode::invalid_argument && error.message.find(kWithoutDryRun) == std::string::npos) {
    return fail(std::move(answer).error().with_context("dry run of a ResourceSlice"));
  }
  why_not = error.message;
  return std::optional<Slice>();
}

// Before overlapping devices are offered: a dry run of the first slice, which has the counters.
Result<void> PoolWriter::try_counters(const Pool& pool) {
  const SteadyTime now = clock_.now();
  const bool is_due =
      !counters_.open.value() || counters_.is_due_again(now) || (counters_.recheck && !counters_.is_closed());
  if (shape() == SliceShape::plain || pool.counters.empty() || !is_due) return {};
  const Layout layout = lay_out(pool, {shape(), true});
  if (layout.slices.empty() || layout.slices.front().counters.empty()) return {};
  const Slice wanted = trial_slice(layout.slices.front());
  std::string why = "the API server drops counters (feature gate DRAPartitionableDevices is off)";
  const bool was_closed = counters_.is_closed();
  const auto stored = would_store(wanted, why);
  if (!stored && was_closed) return {};  // slices stay as they are; tried again later
  TRY(stored);
  counters_.take(*stored && has_same_counters(**stored, wanted), now);
  if (counters_.is_closed() && !was_closed) spdlog::warn("slices published without cores and groups: {}", why);
  return {};
}

// Whether taints are kept again, by a dry run: no device that a scheduler could take is stored.
void PoolWriter::try_taints() {
  const SteadyTime now = clock_.now();
  if (!taints_.is_due_again(now)) return;
  PoolDevice probe;
  probe.name = "probe";
  probe.taints.push_back({identity_.driver + "/unhealthy", "probe", "NoSchedule"});
  std::string why;
  const auto stored = would_store(trial_slice({{}, {probe}}), why);
  if (!stored) return;  // tried again later
  taints_.take(*stored && has_taints(**stored), now);
  if (!taints_.is_closed()) spdlog::info("API server stores taints, unhealthy devices tainted in the slices");
}

// Before devices are shared, by a dry run of one that no scheduler can take.
Result<void> PoolWriter::try_shares(const Pool& pool) {
  const SteadyTime now = clock_.now();
  const bool is_wanted =
      (pool.shares == Shares::on || all_waits()) &&
      std::ranges::any_of(pool.devices, [](const PoolDevice& device) { return device.shareable_cores > 0; });
  const bool is_due = !shares_.open.value() || shares_.is_due_again(now) || (shares_.recheck && !shares_.is_closed());
  if (!is_wanted || !is_due) return {};
  PoolDevice probe;
  probe.name = "probe";
  probe.capacity["cores"] = probe.shareable_cores = 2;
  std::string why = "the API server drops requestPolicy (feature gate DRAConsumableCapacity is off)";
  const bool was_closed = shares_.is_closed();
  const auto stored = would_store(trial_slice({{}, {probe}}), why);
  if (!stored && was_closed) return {};  // slices stay as they are; tried again later
  TRY(stored);
  shares_.take(*stored && has_shares(**stored), now);
  if (shares_.is_closed() && !was_closed) spdlog::warn("slices published without shares of devices: {}", why);
  if (!shares_.is_closed() && was_closed)
    spdlog::info("API server stores requestPolicy, devices shared by their cores");
  return {};
}

Result<Written> PoolWriter::write(const Pool& pool, Overwrite overwrite) {
  constexpr int kTries = 4;
  TRY(check_server());
  if (!has_continued_) {
    TRY_ASSIGN(const std::vector<Slice> before, list_slices(api_, identity_.driver, identity_.node.name));
    TRY(continue_from(before));
  }
  for (int attempt = 0; attempt < kTries; ++attempt) {
    TRY(try_counters(pool));
    try_taints();
    TRY(try_shares(pool));
    TRY_ASSIGN(const std::vector<Slice> stored, list_slices(api_, identity_.driver, identity_.node.name));
    identity_.made_for = to_text({shape(), all_waits()});
    const std::string salt = salt_in_use(stored, identity_);
    if (!salt.empty() && salt != taken_salt_) identity_.salt = salt;
    Layout layout = lay_out(pool, {counters_.is_closed() ? SliceShape::plain : shape(), !taints_.is_closed(),
                                   shares_.open.value().value_or(false), all_waits()});
    SyncPlan plan = plan_sync(stored, layout.slices, identity_);
    if (!plan.creates.empty()) {
      const std::string uid = identity_.node.uid;
      TRY(read_node());  // the garbage collector deletes slices of an older Node object
      if (uid != identity_.node.uid) continue;
    }
    Written written;
    written.left_out = std::move(layout.left_out);
    for (const SliceContent& content : layout.slices) written.devices += content.devices.size();
    for (const Slice& slice : stored) {
      written.versions[slice.name] = slice.resource_version;
      written.generation = std::max(written.generation, generation_of(slice));
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
    const auto gone = remove_slice(api_, slice);
    if (!gone && gone.error().code == ErrorCode::failed_precondition) return lost_race(gone.error());
    TRY(gone);
    written.versions.erase(slice.name);
    ++written.writes;
  }
  for (const Slice& slice : plan.updates) {
    auto answer =
        call_for_slice(api_, {.method = Method::replace, .path = path_of(slice.name), .body = slice_text(slice)});
    if (!answer && answer.error().code == ErrorCode::not_found) return lost_race(answer.error());
    TRY_ASSIGN(const Outcome outcome, store(slice, std::move(answer), written));
    if (outcome != Outcome::done) return outcome;
  }
  for (const Slice& slice : plan.creates) {
    auto answer = call_for_slice(api_, {.method = Method::create, .path = kSlicesPath, .body = slice_text(slice)});
    if (!answer && answer.error().code == ErrorCode::failed_precondition) TRY(avoid_foreign(slice.name));
    TRY_ASSIGN(const Outcome outcome, store(slice, std::move(answer), written));
    if (outcome != Outcome::done) return outcome;
  }
  return Outcome::done;
}

// After a name was rejected as taken. Where an object of another driver or node has it, which this driver may not
// delete, slices get other names; else it is a slice of this node that was created after the list.
Result<void> PoolWriter::avoid_foreign(const std::string& name) {
  const auto found = call_for_slice(api_, {.path = path_of(name)});
  if (!found && found.error().code == ErrorCode::not_found) return {};
  TRY(found);
  const std::string driver = spec_text(*found, "driver"), node = spec_text(*found, "nodeName");
  if (driver == identity_.driver && node == identity_.node.name) return {};
  taken_salt_ = identity_.salt;
  identity_.salt = random_salt();
  spdlog::warn(
      "slice name taken by another ResourceSlice slice={} driver=\"{}\" node=\"{}\", publishing as {}; find who "
      "created that slice and delete it",
      name, printable(driver, 64), printable(node, 253), slice_name(0, identity_));
  return {};
}

Result<PoolWriter::Outcome> PoolWriter::store(const Slice& wanted, Result<Slice> answer, Written& written) {
  if (!answer && answer.error().code == ErrorCode::failed_precondition) return lost_race(answer.error());
  TRY(answer);
  ++written.writes;
  written.versions[wanted.name] = answer->resource_version;
  own_[wanted.name] = answer->resource_version;
  written.generation = generation_of(wanted);
  if (was_stripped(wanted, *answer)) return Outcome::stripped;
  if (!is_same(*answer, wanted)) {
    spdlog::warn("slice changed by an admission webhook or policy slice={}", wanted.name);
  }
  return Outcome::done;
}

// Remembers the fields that the server drops, and logs them once.
bool PoolWriter::was_stripped(const Slice& wanted, const Slice& stored) {
  const bool counters = has_counters(wanted) && !has_counters(stored);
  const bool taints = has_taints(wanted) && !has_taints(stored);
  const bool shares = has_shares(wanted) && !has_shares(stored);
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
  if (shares) {
    shares_.take(false, now);
    spdlog::warn(
        "slices published without shares of devices: the API server drops requestPolicy (feature gate "
        "DRAConsumableCapacity is off)");
  }
  return counters || taints || shares;
}

}  // namespace neuron::plugin::dra
