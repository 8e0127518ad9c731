#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "agent/base/turn_loop.h"
#include "agent/kube/answers.h"
#include "agent/kube/limits.h"
#include "agent/kube/object_watch.h"
#include "plugin/dra/slices/pool.h"

// Publishes the pool of a node: SlicePublisher decides when to write, PoolWriter (pool_writer.cpp) writes once, and
// plan_sync() (slice_sync.cpp) compares the ResourceSlices of resource.k8s.io/v1 that the server stores with those that
// the node should have (docs/reference/dra.md#resource-slices). Functions are pure.
namespace neuron::plugin::dra {

// A ResourceSlice, stored or wanted, as a whole: `json` is what POST and PUT send and what the server answers. uid and
// resource_version are "" in a slice that is to be created. The stored text is foreign.
using Slice = kube::ApiObject;

// The Node object that owns the slices; the garbage collector deletes them with it.
struct OwnerNode {
  std::string name;
  std::string uid;  // "" = the slices get no owner
  NetworkLayers network_layers{};
};

struct PoolIdentity {
  std::string driver;
  std::string pool;  // name; the node's by default
  OwnerNode node;
  std::string salt{};  // of slices' names: "", or 8 hexadecimal digits where a foreign object has one of them
  // Annotation "<driver>/made-for" of slices: what the servers are that they are made for (PoolWriter); "" = none.
  std::string made_for{};
};

// One object, the answer to GET, POST and PUT; a dry run's has no resourceVersion. Errors: data_corrupt (not a
// ResourceSlice with a name).
[[nodiscard]] Result<Slice> parse_slice(std::string_view text);

// A page of a list. Errors: data_corrupt (no list, an object without a name or resourceVersion, more than 512 objects).
[[nodiscard]] Result<kube::ListPage> parse_slices(std::string_view text);
// The slice as JSON, as POST and PUT accept it.
[[nodiscard]] std::string slice_text(const Slice& slice);

// Members of the spec: "driver", "nodeName"; "" where they are absent.
[[nodiscard]] std::string spec_text(const Slice& slice, const char* name);
// The pool's name and generation; "" and 0 where they are absent.
[[nodiscard]] std::string pool_of(const Slice& slice);
[[nodiscard]] std::int64_t generation_of(const Slice& slice);
// Whether the slice has counters, or a device that uses some; whether a device has a taint; may be shared by cores.
[[nodiscard]] bool has_counters(const Slice& slice);
[[nodiscard]] bool has_taints(const Slice& slice);
[[nodiscard]] bool has_shares(const Slice& slice);

// Whether owners and spec are the same: as canonical JSON, in which quantities are numbers ("1k" is "1000") and taints
// have no time. Labels, annotations and the server's metadata do not count.
[[nodiscard]] bool is_same(const Slice& a, const Slice& b);
// Whether the counter sets alone are the same.
[[nodiscard]] bool has_same_counters(const Slice& a, const Slice& b);

// In this order: deletes, updates, creates.
struct SyncPlan {
  std::vector<Slice> deletes;  // as they are stored
  std::vector<Slice> updates;  // with the stored uid and resource_version
  std::vector<Slice> creates;
  [[nodiscard]] bool empty() const { return deletes.empty() && updates.empty() && creates.empty(); }
};

// `stored`: all slices of this driver and node. `wanted`: the slices that the node should have, in order; none: all are
// deleted. The pool's generation stays when nothing is new and at most one slice differs; else it rises and every slice
// is written. Slices without a place in `wanted` are deleted: under another name, of another pool. Taints keep the time
// at which they were added.
[[nodiscard]] SyncPlan plan_sync(const std::vector<Slice>& stored, const std::vector<SliceContent>& wanted,
                                 const PoolIdentity& identity);

// "00003-neuron.aws.com-node1", with a salt "000037f0c1d22-neuron.aws.com-node1". The names sort as the slices do, and
// are the same for every instance of the driver, so that two instances do not create one slice twice. Where a name
// could exceed 253 bytes, a digest replaces its end. The admission policy of manifests/overlays/dra admits only these
// names.
[[nodiscard]] std::string slice_name(std::size_t index, const PoolIdentity& identity);

// The salt in the names of stored slices of the pool, so that every instance continues with it; the least of several,
// "" where no name has one.
[[nodiscard]] std::string salt_in_use(const std::vector<Slice>& stored, const PoolIdentity& identity);

// PoolIdentity::made_for of a stored slice.
[[nodiscard]] std::string made_for(const Slice& slice, const std::string& driver);

// The slices that would be published if nothing were stored.
[[nodiscard]] std::vector<Slice> whole_slices(const std::vector<SliceContent>& wanted, const PoolIdentity& identity);
// The slices as a v1 List for `kubectl apply -f`, indented.
[[nodiscard]] std::string published_text(const Layout& layout, const PoolIdentity& identity);

inline constexpr const char* kSlicesPath = "/apis/resource.k8s.io/v1/resourceslices";

// A value from the answers of API servers that need not agree, as during a server by server update of a control plane.
// The first answer counts, and `lowest`, which is right for every server, counts at once. Another answer counts after
// kAnswers equal ones in a row, at least kApart apart and over kTime; until then the value is `lowest`.
template <typename T>
class SteadyAnswer {
 public:
  static constexpr int kAnswers = 3;
  static constexpr std::chrono::minutes kApart{4}, kTime{10};

  explicit SteadyAnswer(T lowest) : lowest_(lowest) {}

  [[nodiscard]] const std::optional<T>& value() const { return value_; }  // nullopt: no answer yet
  [[nodiscard]] bool is_rising() const { return answers_ > 0; }
  void take(T answer, SteadyTime now) {
    if (!value_ || answer == *value_ || answer == lowest_) {
      value_ = answer;
      answers_ = 0;
      return;
    }
    value_ = lowest_;  // as the two exclude each other
    if (answers_ == 0 || answer != next_) {
      next_ = answer;
      answers_ = 0;
      first_ = now;
    } else if (now - newest_ < kApart) {
      return;
    }
    ++answers_;
    newest_ = now;
    if (answers_ < kAnswers || now - first_ < kTime) return;
    value_ = answer;
    answers_ = 0;
  }

 private:
  T lowest_;
  std::optional<T> value_;
  T next_{};             // with `answers_`, `first_` and `newest_`
  int answers_ = 0;      // equal ones in a row, other than the value
  SteadyTime first_{};   // of the first of them
  SteadyTime newest_{};  // of the newest that was counted
};

// Names of slices and their resourceVersions.
using SliceVersions = std::map<std::string, std::string>;

// The result of writing a pool. Passive data.
struct Written {
  SliceVersions versions;  // of all slices of the pool, as they are stored now
  std::size_t devices = 0;
  std::int64_t generation = 0;
  std::size_t writes = 0;             // creates, updates and deletes
  bool overwrote = false;             // slices that another writer had changed
  bool deferred = false;              // nothing was written, since overwriting was not allowed
  std::vector<std::string> left_out;  // as of Layout
};

// A feature gate, known from the objects that API servers store.
struct FeatureGate {
  SteadyAnswer<bool> open{false};
  SteadyTime asked{};
  SteadyTime closed_at{};  // time of the newest answer with a closed gate
  bool recheck = false;    // the server's version has changed

  void take(bool is_open, SteadyTime now);
  [[nodiscard]] bool is_closed() const { return open.value() == false; }
  [[nodiscard]] bool is_due_again(SteadyTime now) const;  // closed, and to be asked again
};

// Writes a pool to the API server in the shape that this server takes, and compares the answers: a server with closed
// gates returns slices without counters or taints, and then gets a pool without them. Before overlapping devices are
// offered, a dry run shows what the server would store. While servers of several versions answer, as during an update
// of the control plane, slices have the shape for the lowest (SteadyAnswer); stored slices say which that was, so that
// the next instance continues with it. Names of objects of another driver or node
// are avoided. One thread at a time; every call may block.
class PoolWriter {
 public:
  static constexpr std::chrono::minutes kFactsAge{4};   // then version and Node are read again
  static constexpr std::chrono::minutes kGatesAge{45};  // then a closed gate is tried again
  static constexpr std::chrono::minutes kTryAgain{60};  // then an invalid pool is sent again

  PoolWriter(kube::Api& api, std::string driver, std::string pool, std::string node, const Clock& clock)
      : api_(api), clock_(clock), identity_{std::move(driver), std::move(pool), {std::move(node), ""}} {}

  // Reads the server's version and the Node object, unless they were read within kFactsAge. True: something has
  // changed, or a gate is to be tried again, so that the pool may have to be written. Errors: of the calls;
  // failed_precondition (a server or kubelet that is too old).
  [[nodiscard]] Result<bool> check_server();

  enum class Overwrite { yes, no };
  // Errors: of the calls, with invalid_argument only where the server names a field that it rejects.
  [[nodiscard]] Result<Written> write(const Pool& pool, Overwrite overwrite);

 private:
  enum class Outcome { done, stale, stripped };  // stale: another writer was quicker; stripped: the server drops fields

  [[nodiscard]] Result<void> try_counters(const Pool& pool);
  void try_taints();
  [[nodiscard]] Result<void> try_shares(const Pool& pool);
  [[nodiscard]] Result<std::optional<Slice>> would_store(const Slice& slice, std::string& why_not);
  [[nodiscard]] Slice trial_slice(const SliceContent& content) const;
  [[nodiscard]] SliceShape shape() const { return shape_.value().value_or(SliceShape::plain); }
  void take_shape(SliceShape newest, SteadyTime now);
  [[nodiscard]] Result<void> continue_from(const std::vector<Slice>& stored);
  [[nodiscard]] bool all_waits() const { return all_waits_.value().value_or(false); }
  [[nodiscard]] Result<void> read_node();
  [[nodiscard]] Result<Outcome> apply(const SyncPlan& plan, Written& written);
  [[nodiscard]] Result<Outcome> store(const Slice& wanted, Result<Slice> answer, Written& written);
  [[nodiscard]] Outcome lost_race(const Error& error);
  [[nodiscard]] Result<void> avoid_foreign(const std::string& name);
  [[nodiscard]] bool was_stripped(const Slice& wanted, const Slice& stored);

  kube::Api& api_;
  const Clock& clock_;
  PoolIdentity identity_;   // the Node's uid is "" until it is known
  std::string taken_salt_;  // of names that foreign objects have

  std::optional<kube::ServerVersion> server_;          // the newest answer
  SteadyAnswer<SliceShape> shape_{SliceShape::plain};  // by the servers' versions
  bool has_continued_ = false;                         // from the slices that were stored before
  SteadyTime facts_from_{};
  FeatureGate counters_;                 // tried by a dry run before there are counters
  FeatureGate taints_;                   // unknown counts as open: the answers to writes show it
  FeatureGate shares_;                   // tried by a dry run before devices are shared
  SteadyAnswer<bool> all_waits_{false};  // by the servers' versions
  SliceVersions own_;                    // of slices as this writer wrote them, or found them as wanted
  std::string conflict_;                 // the server's message about the newest one
};

// The state of publishing. Passive data.
struct PublishState {
  bool published = false;    // the newest attempt to store the pool succeeded
  std::string error;         // why not, or the error of the watch; "" = none
  std::size_t slices = 0;    // as published last
  std::size_t devices = 0;   // in them
  std::uint64_t writes = 0;  // creates, updates and deletes since the start
};

// Keeps the slices of this node's pool at the API server: writes when the pool changes (1 s after the first of several
// changes), and again within a second when the kubelet or another client deletes them. Writes nothing else: an idle
// node makes two small GETs every few minutes, and a list.
//
// set_pool(), compare_again() and state() from any thread. run() blocks one thread and uses a second one for the watch.
class SlicePublisher final : public kube::WatchSink {
 public:
  struct Settings {
    std::string driver;
    std::string pool;  // its name; the node's as a rule
    std::string node;
  };
  static constexpr std::chrono::milliseconds kPoolPause{1000};   // several changes become one write
  static constexpr std::chrono::milliseconds kStoredPause{200};  // slices are deleted one by one
  // Changes of another writer are overwritten once in this time, so that two writers do not keep the API server busy.
  static constexpr std::chrono::seconds kContestedPause{30};
  static constexpr std::chrono::milliseconds kFirstRetry{1000}, kLongestRetry{60'000};

  SlicePublisher(kube::Api& api, Settings settings, const Clock& clock);
  ~SlicePublisher() override = default;
  SlicePublisher(const SlicePublisher&) = delete;
  SlicePublisher& operator=(const SlicePublisher&) = delete;

  // The pool to publish, with the devices that claims hold; nothing is published before the first call.
  void set_pool(Pool pool) EXCLUDES(mutex_);
  // The kubelet registered the driver, and may have deleted slices without an event of the watch yet.
  void compare_again() EXCLUDES(mutex_);
  [[nodiscard]] PublishState state() const EXCLUDES(mutex_);

  // While nothing may be published yet: whether something could be. The kubelet of a server that is too old, or one
  // that is too old itself, never registers the driver, so that run() is never called; state() and the log say why. The
  // time until the next call. On the thread of run().
  [[nodiscard]] std::chrono::milliseconds check_early() EXCLUDES(mutex_);

  // Until `stop` is requested; then a running call still takes its time (ApiClient::close() ends it).
  void run(const std::stop_token& stop);

  // One step of run(): does what is due, and returns the time until something is. For tests, without the watch.
  [[nodiscard]] std::chrono::milliseconds turn() EXCLUDES(mutex_);

  // Called on the watch's thread.
  void on_reset() override EXCLUDES(mutex_);
  void on_upsert(const kube::ApiObject& object) override EXCLUDES(mutex_);
  void on_remove(const kube::ApiObject& object) override EXCLUDES(mutex_);
  void on_synced() override EXCLUDES(mutex_);
  void on_trouble(const Error& error) override EXCLUDES(mutex_);

 private:
  using PoolPtr = std::shared_ptr<const Pool>;

  // The work of a turn. Passive data.
  struct Task {
    enum class Kind { nothing, check_server, write } kind = Kind::nothing;
    std::chrono::milliseconds pause{};  // nothing: until there may be work
    PoolPtr pool{};
    PoolWriter::Overwrite overwrite = PoolWriter::Overwrite::yes;
    bool is_repair = false;  // the pool has not changed since it was last written
  };
  [[nodiscard]] Task next_task() EXCLUDES(mutex_);
  [[nodiscard]] std::optional<SteadyTime> due_time(SteadyTime now) REQUIRES(mutex_);
  void stored_changed() REQUIRES(mutex_);
  void check_server();
  void write(const Task& task);
  void finish(const Task& task, const Written& written) REQUIRES(mutex_);
  void fail_with(const Error& error) REQUIRES(mutex_);
  void set_error(const Error& error) REQUIRES(mutex_);

  const Settings settings_;
  kube::Api& api_;
  const Clock& clock_;
  PoolWriter writer_;                  // of the thread in run()
  kube::Backoff backoff_;              // the same
  std::vector<std::string> left_out_;  // the same; logged last

  TurnLoop loop_;
  mutable Mutex mutex_;
  PoolPtr pool_ GUARDED_BY(mutex_);
  std::optional<SteadyTime> pool_due_ GUARDED_BY(mutex_);    // it differs from the written one: when to write
  std::optional<SteadyTime> stored_due_ GUARDED_BY(mutex_);  // the watch saw a change: when to compare
  std::optional<SteadyTime> retry_due_ GUARDED_BY(mutex_);   // something failed, or has to wait
  bool compare_ GUARDED_BY(mutex_) = false;
  bool server_is_due_ GUARDED_BY(mutex_) = false;
  bool refused_ GUARDED_BY(mutex_) = false;          // this pool is invalid; only another one, or much time, may help
  SteadyTime not_before_ GUARDED_BY(mutex_){};       // no work is due before
  SteadyTime contested_until_ GUARDED_BY(mutex_){};  // as of kContestedPause
  SliceVersions seen_ GUARDED_BY(mutex_);            // by the watch
  std::optional<SliceVersions> written_ GUARDED_BY(mutex_);  // when a pool was last written
  PoolPtr written_pool_ GUARDED_BY(mutex_);                  // that pool
  std::string watch_error_ GUARDED_BY(mutex_);
  PublishState state_ GUARDED_BY(mutex_);
};

}  // namespace neuron::plugin::dra
