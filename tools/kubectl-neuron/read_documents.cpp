#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "tools/kubectl-neuron/agent_pod.h"
#include "tools/kubectl-neuron/documents.h"
#include "tools/kubectl-neuron/node_usage.h"

namespace neuron::fleet {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kPageSize = 500, kSlicesPageSize = 100;  // a slice of a large node has 100 KB
constexpr std::size_t kMostItems = 200'000;            // of one kind
constexpr std::size_t kMostPages = 1'000;              // likewise: a server may send empty ones
constexpr std::size_t kMostAgentBytes = std::size_t{4} << 20U;

bool is_namespaced(Kind kind) {
  return kind != Kind::nodes && kind != Kind::slices && kind != Kind::device_classes;
}

// In words, for sentences.
std::string words_of(Kind kind) {
  switch (kind) {
    case Kind::nodes:
      return "nodes";
    case Kind::pods:
      return "pods";
    case Kind::slices:
      return "resource slices";
    case Kind::claims:
      return "resource claims";
    case Kind::claim_templates:
      return "resource claim templates";
    case Kind::device_classes:
      return "device classes";
    case Kind::events:
      return "events";
  }
  return "";
}

// The groups that may serve a kind, the newest first.
std::vector<std::string> bases_of(Kind kind) {
  if (kind == Kind::nodes || kind == Kind::pods || kind == Kind::events) return {"/api/v1"};
  return {"/apis/resource.k8s.io/v1", "/apis/resource.k8s.io/v1beta2", "/apis/resource.k8s.io/v1beta1"};
}

// The server's answer other than 200, in its own words.
Error refusal(const kube::ApiReply& reply, const std::string& path) {
  const auto status = kube::parse_object(reply.body, "");
  const std::string words = status ? kube::text_of(*status, {"message"}) : "";
  Error error = make_error(kube::status_error(reply, path).code, "");
  if (reply.status == 404) error.code = ErrorCode::not_found;
  error.message = "the API server answers " + std::to_string(reply.status) + " to " + path;
  if (!words.empty()) error.message += ": " + printable(words, 300);
  return error;
}

// Whether a 404 is the API server's, about the agent's pod; else it is the agent's own.
bool names_pod(const std::string& body) {
  const auto status = kube::parse_object(body, "");
  return status && kube::text_of(*status, {"details", "kind"}) == "pods";
}

// Runs jobs in order, on at most so many threads.
class Jobs {
 public:
  explicit Jobs(int threads) : most_(static_cast<std::size_t>(std::max(threads, 1))) {}
  ~Jobs() { wait(); }
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // From any thread, also from a job.
  void add(std::function<void()> job) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    waiting_.push_back(std::move(job));
    ++left_;
    if (waiting_.size() > idle_ && workers_.size() < most_) workers_.emplace_back([this] { work(); });
    changed_.notify_one();
  }
  // Until all have run, and those that they added; then its threads end.
  void wait() EXCLUDES(mutex_) {
    std::vector<std::jthread> ending;
    const MutexLock lock(mutex_);
    while (left_ > 0) done_.wait(mutex_);
    is_ending_ = true;
    changed_.notify_all();
    ending.swap(workers_);
  }

 private:
  void work() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    for (;;) {
      ++idle_;
      while (waiting_.empty() && !is_ending_) changed_.wait(mutex_);
      --idle_;
      if (waiting_.empty()) return;
      run(std::exchange(waiting_.front(), {}));
      if (--left_ == 0) done_.notify_all();
    }
  }
  void run(const std::function<void()>& job) REQUIRES(mutex_) {
    waiting_.pop_front();
    mutex_.unlock();
    job();
    mutex_.lock();
  }

  const std::size_t most_;
  Mutex mutex_;
  std::condition_variable_any changed_, done_;
  std::deque<std::function<void()>> waiting_ GUARDED_BY(mutex_);
  std::vector<std::jthread> workers_ GUARDED_BY(mutex_);
  std::size_t idle_ GUARDED_BY(mutex_) = 0;
  std::size_t left_ GUARDED_BY(mutex_) = 0;  // waiting or running
  bool is_ending_ GUARDED_BY(mutex_) = false;
};

// One list as it came.
struct List {
  std::vector<std::string> pages;
  ParsedSlices parsed;         // instead of pages
  std::string unknown;         // a sentence; "": it is whole
  std::optional<Error> error;  // why nothing came
};

class Reading {
 public:
  Reading(ClusterReader& cluster, const std::string& own_namespace, const Wanted& wanted, const Progress& progress,
          const ReadLimits& limits)
      : cluster_(cluster), own_namespace_(own_namespace), wanted_(wanted), progress_(progress), limits_(limits) {}

  Result<Documents> run() {
    const std::string read_at = utc_text(std::chrono::system_clock::now());
    std::vector<std::function<void()>> jobs;
    for (const Kind kind : kAllKinds) {
      if (is_wanted(kind)) jobs.emplace_back([this, kind] { read_kind(kind); });
    }
    if (wanted_.context)
      jobs.emplace_back([this] {
        const std::string name = own_namespace();
        step();
        const MutexLock lock(mutex_);
        documents_.default_namespace = name;
      });
    add(std::move(jobs));
    jobs_.wait();
    parsers_.wait();
    TRY(check_anything());
    const MutexLock lock(mutex_);
    if (is_without_claims_) documents_.unknown.emplace_back(kNoClaims);
    documents_.read_at = read_at;
    return std::move(documents_);
  }

 private:
  [[nodiscard]] bool is_wanted(Kind kind) const {
    if (kind == Kind::events) return wanted_.events;
    return kind != Kind::claim_templates || wanted_.claim_templates;
  }

  void add(std::vector<std::function<void()>> jobs) EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      expected_ += jobs.size();
    }
    for (std::function<void()>& job : jobs) jobs_.add(std::move(job));
  }

  void add_agents(const std::vector<std::string>& pods) EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      last_answer_ = steady_clock::now();
    }
    std::vector<std::function<void()>> jobs;
    for (const auto& [node, agent] : agent_pods(pods)) {
      jobs.emplace_back([this, node = node, agent = agent] { read_agent(node, agent); });
    }
    add(std::move(jobs));
  }

  // Agents that the API server cannot reach all take the whole deadline: once none has answered for that long, the rest
  // is not asked.
  [[nodiscard]] bool is_hopeless() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return is_any_late_ && steady_clock::now() - last_answer_ > limits_.agent;
  }

  void read_agent(const std::string& node, const AgentPod& agent) {
    AgentAnswer answer{.pod = agent.pod_namespace + "/" + agent.name, .body = {}, .missing = {}, .metrics = {}};
    if (is_hopeless()) {
      answer.missing = "not asked, since no other agent answers";
    } else {
      ask(agent, answer);
      if (wanted_.metrics && !answer.body.empty()) ask_metrics(agent, answer);
    }
    if (!wanted_.reports || answer.body.empty()) return keep(node, std::move(answer));
    // By few threads: as many as wait for agents would be slower.
    parsers_.add([this, node, answer = std::move(answer)]() mutable {
      parse_report(answer);
      keep(node, std::move(answer));
    });
  }

  void keep(const std::string& node, AgentAnswer answer) EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      documents_.agents.insert_or_assign(node, std::move(answer));
    }
    step();
  }

  void ask(const AgentPod& agent, AgentAnswer& answer) EXCLUDES(mutex_) {
    const kube::ApiCall call{.path = agent.path()};
    auto reply = cluster_.get(call, limits_.agent);
    {
      const MutexLock lock(mutex_);
      const bool is_late = !reply && reply.error().code == ErrorCode::deadline_exceeded;
      is_any_late_ = is_any_late_ || is_late;
      if (!is_late) last_answer_ = steady_clock::now();
    }
    if (!reply && reply.error().code == ErrorCode::deadline_exceeded) {
      answer.missing = "the agent did not answer within " + std::to_string(limits_.agent.count()) + " ms";
    } else if (!reply) {
      answer.missing = reply.error().message;
    } else if (reply->status == 404 && !names_pod(reply->body)) {
      answer.missing = "the agent has no /node: it is of an older version, or was started with --node-document off";
    } else if (reply->status != 200) {
      answer.missing = refusal(*reply, call.path).message;
    } else if (reply->body.size() > kMostAgentBytes) {
      answer.missing = "the agent answered with more than 4 MiB";
    } else {
      answer.body = std::move(reply->body);
    }
  }

  void ask_metrics(const AgentPod& agent, AgentAnswer& answer) {
    const kube::ApiCall call{.path = agent.path("metrics"), .accept = "text/plain"};
    const auto reply = cluster_.get(call, limits_.agent);
    if (reply && reply->status == 200 && reply->body.size() <= kMostAgentBytes)
      answer.metrics = kept_metrics(reply->body);
  }

  void step() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    ++done_;
    if (progress_) progress_(done_, expected_);
  }

  // The one namespace to read where all may not be.
  [[nodiscard]] std::string own_namespace() {
    std::call_once(namespace_once_,
                   [this] { namespace_ = own_namespace_.empty() ? cluster_.context_namespace() : own_namespace_; });
    return namespace_;
  }

  void read_kind(Kind kind) {
    List list = read_list(kind, "");
    if (list.error && list.error->code == ErrorCode::permission_denied && is_namespaced(kind)) read_own(kind, list);
    const bool is_absent = list.error && list.error->code == ErrorCode::not_found;
    if (is_absent) {
      is_without_claims_ = true;
    } else if (list.error) {
      list.unknown = words_of(kind) + " are not known: " + list.error->message;
    }
    // Other lists may still be on their way.
    if (kind == Kind::pods && wanted_.agents) add_agents(list.pages);
    {
      const MutexLock lock(mutex_);
      errors_.at(static_cast<std::size_t>(kind)) = list.error;
      documents_.list(kind) = std::move(list.pages);
      if (kind == Kind::slices) documents_.parsed = std::move(list.parsed);
      if (!list.unknown.empty()) documents_.partial.emplace(plural_of(kind));
      if (!list.unknown.empty()) documents_.unknown.push_back(std::move(list.unknown));
    }
    step();
  }

  // Instead of a list of all namespaces that was refused: that of the own one; and the agents' pods in the usual one.
  void read_own(Kind kind, List& list) {
    constexpr const char* kAgents = "kube-system";
    const std::string name = own_namespace();
    List own = read_list(kind, name);
    if (kind == Kind::pods && name != kAgents) {
      List agents = read_list(kind, kAgents);
      for (std::string& page : agents.pages) own.pages.push_back(std::move(page));
      if (!agents.error) own.error.reset();
    }
    if (own.error) return;
    own.unknown = words_of(kind) + " of other namespaces than " + name + " are not shown: " + list.error->message;
    list = std::move(own);
  }

  // In all namespaces, or one.
  List read_list(Kind kind, const std::string& only_namespace) {
    List list;
    for (const std::string& base : bases_of(kind)) {
      const std::string inner = only_namespace.empty() ? "" : "/namespaces/" + kube::percent_encoded(only_namespace);
      list = read_pages(kind, base + inner + "/" + std::string(plural_of(kind)));
      if (!list.error || list.error->code != ErrorCode::not_found) return list;
    }
    return list;
  }

  List read_pages(Kind kind, const std::string& path) {
    List list;
    std::string next;
    std::size_t items = 0, pages = 0;
    do {
      auto page = read_page(kind, path, next, list);
      if (!page) {
        if (pages == 0) {
          list.error = std::move(page).error();
        } else {
          list.unknown =
              words_of(kind) + " after the first " + std::to_string(items) + " are not known: " + page.error().message;
        }
        return list;
      }
      if (!page->next.empty() && page->next == next) {
        list.unknown = words_of(kind) + " after the first " + std::to_string(items) +
                       " are not known: the server names the same page again";
        return list;
      }
      next = std::move(page->next);
      items += page->items;
      ++pages;
      if (!page->text.empty()) list.pages.push_back(std::move(page->text));
    } while (!next.empty() && items < kMostItems && pages < kMostPages);
    if (!next.empty()) {
      list.unknown = "only the first " + std::to_string(items) + " " + words_of(kind) + ", in " +
                     counted(pages, "page") + ", are shown";
    }
    return list;
  }

  Result<Page> read_page(Kind kind, const std::string& path, const std::string& next, List& list) {
    const int size = kind == Kind::slices ? kSlicesPageSize : kPageSize;
    kube::ApiCall call{.path = path, .query = "limit=" + std::to_string(size)};
    if (!next.empty()) call.query += "&continue=" + kube::percent_encoded(next);
    TRY_ASSIGN(kube::ApiReply reply, cluster_.get(call, limits_.page));
    if (reply.status != 200) return fail(refusal(reply, call.path));
    if (kind != Kind::slices || !wanted_.reports) return kept_page(kind, reply.body);
    return parse_slices(reply.body, facts_, list.parsed);
  }

  Result<void> check_anything() {
    const MutexLock lock(mutex_);
    const auto& nodes = errors_.at(static_cast<std::size_t>(Kind::nodes));
    const auto& pods = errors_.at(static_cast<std::size_t>(Kind::pods));
    if (nodes && pods) return fail(*nodes);
    return {};
  }

  ClusterReader& cluster_;
  const std::string& own_namespace_;
  const Wanted& wanted_;
  const Progress& progress_;
  const ReadLimits& limits_;
  Mutex mutex_;
  Documents documents_ GUARDED_BY(mutex_);
  std::array<std::optional<Error>, kKinds> errors_ GUARDED_BY(mutex_);
  std::size_t done_ GUARDED_BY(mutex_) = 0;
  std::size_t expected_ GUARDED_BY(mutex_) = 0;
  bool is_any_late_ GUARDED_BY(mutex_) = false;
  SteadyTime last_answer_ GUARDED_BY(mutex_);
  std::atomic<bool> is_without_claims_ = false;  // the server is older than the API group
  SliceFacts facts_;                             // of the job that reads slices
  std::once_flag namespace_once_;
  std::string namespace_;
  Jobs parsers_{static_cast<int>(std::min(4U, std::thread::hardware_concurrency()))};
  Jobs jobs_{limits_.at_once};
};

}  // namespace

Result<Documents> read_documents(ClusterReader& cluster, const std::string& own_namespace, const Wanted& wanted,
                                 const Progress& progress, const ReadLimits& limits) {
  return Reading(cluster, own_namespace, wanted, progress, limits).run();
}

}  // namespace neuron::fleet
