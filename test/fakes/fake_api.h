#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <limits>
#include <optional>

#include "agent/base/mutex.h"
#include "agent/kube/api.h"
#include "test/fakes/fake_api_path.h"

namespace neuron::fakes {

// An API server in memory: objects at their paths (every version of a group shows the same object, unconverted), with
// uid, resourceVersion and generation, conflicts, generateName, field selectors, lists in pages, and watches. Compared
// call by call with kube-apiserver 1.36.3: statuses, reasons and kinds are the same. What it does not do: defaults,
// conversion, label selectors, ownership of fields (apply merges, lists are replaced) but of labels and conditions of
// Nodes (test/fakes/fake_api_owners.h).
//
// Thread-safe. The test is the outside world: put(), drop() and the rest act as somebody else with kubectl would.
class FakeApi final : public kube::Api {
 public:
  using Json = nlohmann::json;
  using Method = kube::Method;
  static constexpr int kAlways = std::numeric_limits<int>::max();

  // What the server's feature gates leave of a ResourceSlice (KEPs 4815, 5055 and 5075): fields of a gate that is off
  // go without a word.
  struct Gates {
    bool partitionable_devices = true;  // sharedCounters, consumesCounters
    bool device_taints = true;          // taints
    bool consumable_capacity = true;    // allowMultipleAllocations, requestPolicy
  };
  // Which calls fail, and how. `lost`: the server does what was asked, and only its answer is lost.
  struct Failure {
    int times = 1;                                // kAlways: until heal()
    std::optional<Method> method = std::nullopt;  // none: any, watches too
    std::string path_part{};                      // in the call's path; "" = any
    int status = 0;                               // answered with a Status object
    std::string words = "as the test asked for";  // its message
    std::optional<Error> error = std::nullopt;    // no answer at all
    bool hangs = false;                           // no answer until let_go(), or until the watch is stopped
    bool lost = false;                            // with `error`
  };

  // Of the outside world. Paths are those of calls: "/apis/resource.k8s.io/v1/resourceslices/n1-x".
  void put(const std::string& path, Json object);  // creates or replaces; name and kind come from the path
  void drop(const std::string& path);              // deletes, finalizers or not; nothing if it is not there
  // Changes an existing Node, or its status ("/api/v1/nodes/n1/status"), by an update of that manager; null: removed.
  void write_as(const std::string& manager, const std::string& path, const Json& merge);
  [[nodiscard]] Json at(const std::string& path) const;                // null if it is not there
  [[nodiscard]] std::vector<Json> all(const std::string& path) const;  // of a collection, by name

  void set_gates(Gates gates) {
    change([&] { gates_ = gates; });
  }
  void set_version(std::string minor, std::string git) {  // of /version: "36", "v1.36.3"
    change([&] { minor_ = std::move(minor), git_ = std::move(git); });
  }
  void set_served(std::vector<std::string> versions) {  // of resource.k8s.io, the preferred first; none: no such group
    change([&] { served_ = std::move(versions); });
  }
  // Says what is wrong with an object that is to be written (answer 422), or "".
  void set_validation(std::function<std::string(const Json&)> rule) {
    change([&] { rule_ = std::move(rule); });
  }

  void fail_next(Failure failure) {
    change([&] { failures_.push_back(std::move(failure)); });
  }
  void fail_next(int times, int status) { fail_next({.times = times, .status = status}); }
  void fail_next(int times, Error error) { fail_next({.times = times, .error = std::move(error)}); }
  void heal() {
    change([&] { failures_.clear(); });
  }
  void let_go() {
    change([&] { ++let_go_; });
  }  // of the calls that hang now: deadline_exceeded

  void end_watches() {
    change([&] { ++ends_; });
  }  // as a server does after some minutes
  void expire() {
    change([&] { oldest_ = version_; });
  }  // what happened is forgotten: 410
  void expire_by_status(bool by_status) {
    change([&] { expired_status_ = by_status; });
  }  // 410 instead of an ERROR line
  void send_bookmark() {
    change([&] { history_.push_back({version_, {}, {}, {}, true, {}}); });
  }
  void send_line(std::string line) {
    change([&] { history_.push_back({version_, {}, {}, {}, false, std::move(line)}); });
  }

  // What it was asked, watches too, in order of arrival.
  [[nodiscard]] std::vector<kube::ApiCall> calls() const;
  [[nodiscard]] std::vector<kube::ApiCall> writes() const;  // without GETs and what only tries
  void forget_calls() {
    change([&] { calls_.clear(); });
  }
  [[nodiscard]] int open_watches() const;
  // True when `holds` became true, asked at the start and after everything that happens here, with no lock held.
  [[nodiscard]] bool wait(const std::function<bool()>& holds,
                          std::chrono::milliseconds patience = std::chrono::seconds(20)) const;

  [[nodiscard]] Result<kube::ApiReply> call(const kube::ApiCall& call) override;
  [[nodiscard]] Result<kube::ApiReply> stream(const kube::ApiCall& call, const OnLine& on_line,
                                              const std::stop_token& stop) override;

 private:
  struct Event {
    long version;
    std::string key;
    Json before, after;  // null: it was not, or is not, there
    bool is_bookmark = false;
    std::string line{};  // sent as it is
  };
  using Query = std::map<std::string, std::string>;
  using Lock = std::unique_lock<Mutex>;

  void change(const std::function<void()>& what) {
    const Lock lock(mutex_);
    what();
    ++changes_;
    changed_.notify_all();
  }
  void record(const kube::ApiCall& call) {
    calls_.push_back(call);
    ++changes_;
    changed_.notify_all();
  }
  static kube::ApiReply answer(int status, const Json& body) { return {status, body.dump()}; }
  static kube::ApiReply status(int code, const std::string& reason, const std::string& words) {
    return answer(code, status_object(code, reason, words));
  }
  static Json status_object(int code, const std::string& reason, const std::string& words) {
    Json object{{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", Json::object()},
                {"status", "Failure"}, {"message", words},   {"reason", reason},
                {"code", code}};
    if (code == 422) {  // the server's own validation names the field
      object["details"]["causes"].push_back({{"reason", "FieldValueInvalid"}, {"message", words}, {"field", "spec"}});
    }
    return object;
  }
  static kube::ApiReply not_found(const ApiPath& path) {
    Json object = status_object(404, "NotFound", path.resource + "." + path.group + " \"" + path.name + "\" not found");
    object["details"]["name"] = path.name;  // as for every path that the server serves
    return answer(404, object);
  }
  // An answer that the test asked for; nullopt: none. Unlocks while it hangs.
  std::optional<Result<kube::ApiReply>> failure(const kube::ApiCall& call, const std::stop_token& stop, Lock& lock,
                                                bool& is_lost);

  kube::ApiReply serve(const kube::ApiCall& call);
  std::optional<kube::ApiReply> discovery(const std::string& path) const;
  kube::ApiReply list(const ApiPath& path, const Query& query) const;
  kube::ApiReply create(const ApiPath& path, Json object);
  kube::ApiReply try_create(const ApiPath& path, Json object);  // dryRun
  kube::ApiReply update(const ApiPath& path, Json object);
  kube::ApiReply patch(const ApiPath& path, const Json& change, bool is_apply, const Query& query);
  kube::ApiReply apply_node(const ApiPath& path, const Json& wanted, const Query& query);
  kube::ApiReply remove(const ApiPath& path, const Json& options);
  kube::ApiReply remove_all(const ApiPath& path, const Query& query);
  void store(const ApiPath& path, Json object);  // null: it goes
  void strip(const ApiPath& path, Json& object) const;
  [[nodiscard]] std::string wrong_with(const ApiPath& path, const Json& object) const;
  [[nodiscard]] bool is_served(const ApiPath& path) const;
  // The lines from history_[from] on that a watch of `path` sees.
  [[nodiscard]] std::vector<std::string> lines_since(std::size_t from, const ApiPath& path,
                                                     const FieldSelector& selector) const;
  [[nodiscard]] std::vector<std::string> first_lines(const ApiPath& path, const FieldSelector& selector) const;
  static Json shown(const ApiPath& path, Json object) {
    object["apiVersion"] = path.api_version();
    object["kind"] = path.kind();
    return object;
  }

  mutable Mutex mutex_;
  mutable std::condition_variable_any changed_;
  std::map<std::string, Json> objects_;
  std::deque<Event> history_;
  std::deque<Failure> failures_;
  std::vector<kube::ApiCall> calls_;
  std::function<std::string(const Json&)> rule_;
  Gates gates_;
  std::string minor_ = "36";
  std::string git_ = "v1.36.3";
  std::vector<std::string> served_{"v1"};  // as 1.34 and later by default
  long version_ = 1000;
  long oldest_ = 0;
  long names_ = 0;
  long changes_ = 0;
  long ends_ = 0;
  long let_go_ = 0;
  int open_ = 0;
  bool expired_status_ = false;
};

}  // namespace neuron::fakes

#include "test/fakes/fake_api_answers.h"  // IWYU pragma: export
#include "test/fakes/fake_api_nodes.h"    // IWYU pragma: export
#include "test/fakes/fake_api_watch.h"    // IWYU pragma: export
