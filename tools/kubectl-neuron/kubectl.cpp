#include "tools/kubectl-neuron/documents.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "agent/base/child_process.h"
#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/base/parse.h"
#include "agent/host/temporary_directory.h"
#include "agent/kube/transfer.h"

namespace neuron::fleet {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::size_t kMaxAnswer = 32 * kMiB;      // a page of 500 objects of 64 KiB; all lists are read at once
constexpr std::size_t kMaxAgentAnswer = 5 * kMiB;  // more than read_documents() takes
constexpr milliseconds kStartBudget{15'000};
constexpr std::size_t kTail = 4096;

// The end of a program's output, which a thread reads as long as the program lives.
class Tail {
 public:
  void add(std::string_view text) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    text_ += text;
    if (text_.size() > kTail) text_.erase(0, text_.size() - kTail);
  }
  [[nodiscard]] std::string last_line() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const std::string_view all = trim(text_);
    const std::size_t end = all.rfind('\n');
    return printable(end == std::string_view::npos ? all : all.substr(end + 1), 400);
  }

 private:
  mutable Mutex mutex_;
  std::string text_ GUARDED_BY(mutex_);
};

// Appends what is there; false at the end of the output, or of the budget.
bool read_more(int fd, std::string& text, SteadyTime until) {
  const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now()).count();
  pollfd ready{fd, POLLIN, 0};
  if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0) return false;
  std::array<char, 4096> buffer;  // NOLINT: read() fills it
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

kube::HttpRequest request_of(const kube::ApiCall& call) {
  kube::HttpRequest request;
  request.target = call.path + (call.query.empty() ? "" : "?" + call.query);
  if (!call.accept.empty()) request.accept = call.accept;
  return request;
}

// kubectl's text for a server's error: "Error from server (Forbidden): nodes is forbidden: …".
int status_in(std::string_view words) {
  const auto has = [&](std::string_view text) { return words.find(text) != std::string_view::npos; };
  if (has("(Forbidden)")) return 403;
  if (has("(Unauthorized)")) return 401;
  if (has("(NotFound)")) return 404;
  if (has("(ServiceUnavailable)")) return 503;
  return 0;
}

// Of a page of a list, or of an agent, of which many answer at once.
std::size_t most_bytes(const kube::ApiCall& call) {
  return call.path.find("/proxy/") == std::string::npos ? kMaxAnswer : kMaxAgentAnswer;
}

std::string as_typed(const kube::ApiCall& call) {
  return "kubectl get --raw " + call.path;
}

class Kubectl : public ClusterReader {
 public:
  Kubectl(std::string program, ClusterFlags flags, std::shared_ptr<Waits> waits)
      : program_(std::move(program)), flags_(std::move(flags)), waits_(std::move(waits)) {}

  [[nodiscard]] std::string context_namespace() override {
    const Waits::Call waiting(waits_.get(), "kubectl config view", kStartBudget);
    const auto outcome =
        run_program(words({"config", "view", "--minify", "-o", "jsonpath={..namespace}"}), kStartBudget, kTail);
    const bool is_known = outcome && outcome->status == 0 && is_dns_label(trim(outcome->output));
    return is_known ? std::string(trim(outcome->output)) : "default";
  }

 protected:
  [[nodiscard]] std::vector<std::string> words(std::vector<std::string> command) const {
    std::vector<std::string> all = {program_};
    all.insert(all.end(), command.begin(), command.end());
    for (std::string& flag : flags_.words()) all.push_back(std::move(flag));
    return all;
  }
  [[nodiscard]] Waits* waits() const { return waits_.get(); }

 private:
  std::string program_;
  ClusterFlags flags_;
  std::shared_ptr<Waits> waits_;
};

// A process per call.
class RawCalls final : public Kubectl {
 public:
  using Kubectl::Kubectl;

  [[nodiscard]] Result<kube::ApiReply> get(const kube::ApiCall& call, milliseconds deadline) override {
    const auto command = words({"get", "--raw", request_of(call).target});
    const Waits::Call waiting(waits(), as_typed(call), deadline);
    TRY_ASSIGN(ChildOutcome outcome, run_program(command, deadline, most_bytes(call)));
    if (outcome.end == ChildOutcome::End::out_of_time) {
      return fail(ErrorCode::deadline_exceeded, as_typed(call) + " did not end within " + words_of(deadline));
    }
    if (outcome.end == ChildOutcome::End::cut) {
      return fail(ErrorCode::data_corrupt,
                  as_typed(call) + " answered with more than " + std::to_string(most_bytes(call) / kMiB) + " MiB");
    }
    if (outcome.status == 0) return kube::ApiReply{200, std::move(outcome.output)};
    const std::string why = failure_of(outcome);
    const int status = status_in(outcome.errors);
    if (status == 0) return fail(ErrorCode::unavailable, "kubectl: " + why);
    return kube::ApiReply{status, nlohmann::json({{"message", why}}).dump()};
  }
};

// The child `kubectl proxy`.
class ProxyCalls final : public Kubectl {
 public:
  using Kubectl::Kubectl;
  ~ProxyCalls() override {
    proxy_.child.reset();  // its output ends with it
    if (reader_.joinable()) reader_.join();
  }
  ProxyCalls(const ProxyCalls&) = delete;
  ProxyCalls& operator=(const ProxyCalls&) = delete;

  // Errors: unavailable, with the last line of its output.
  [[nodiscard]] Result<void> start() {
    // A process that can connect has the user's rights: the socket is in a directory of mode 0700.
    TRY_ASSIGN(directory_, host::TemporaryDirectory::make(host::temporary_place(0, 1)));
    access_.url = "http://localhost";
    access_.unix_socket = directory_->path() + "/kubectl";
    TRY_ASSIGN(proxy_, start_program(words({"proxy", "--unix-socket=" + access_.unix_socket})));
    const SteadyTime until = steady_clock::now() + kStartBudget;
    std::string output;
    // No thread yet says that it waits.
    if (waits() != nullptr && !is_serving(output, steady_clock::now() + waits()->patience()) && !has_ended_)
      waits()->say("kubectl proxy", kStartBudget);
    if (!is_serving(output, until)) {
      tail_.add(output);
      return fail(ErrorCode::unavailable, "kubectl proxy does not start: " + tail_.last_line());
    }
    reader_ = std::thread([this] { follow(); });
    return {};
  }

  [[nodiscard]] Result<kube::ApiReply> get(const kube::ApiCall& call, milliseconds deadline) override {
    const Waits::Call waiting(waits(), as_typed(call), deadline);
    const kube::HttpLimits limits{.deadline = deadline, .max_bytes = most_bytes(call)};
    kube::Connection connection = borrow();
    auto answer = connection.call(access_, request_of(call), limits, {});
    give_back(std::move(connection));
    if (!answer && answer.error().code == ErrorCode::deadline_exceeded) {
      return fail(ErrorCode::deadline_exceeded,
                  "kubectl proxy has no answer to " + call.path + " after " + words_of(deadline));
    }
    if (!answer) return fail(std::move(answer).error());
    // Failures of kubectl itself are text; those of the server are JSON.
    if (answer->status >= 500 && !answer->body.starts_with('{')) {
      const std::string own = printable(trim(answer->body), 400);
      const std::string words = own.empty() ? tail_.last_line() : own;
      const std::string none = "it answers " + std::to_string(answer->status) + " and says nothing";
      return fail(ErrorCode::unavailable, "kubectl: " + (words.empty() ? none : words));
    }
    return kube::ApiReply{answer->status, std::move(answer->body)};
  }

 private:
  static constexpr std::size_t kMaxOutput = std::size_t{1} << 20U;

  // Whether the proxy says so before that time; `output` is what it said so far.
  bool is_serving(std::string& output, SteadyTime until) {
    while (output.find("Starting to serve") == std::string::npos) {
      if (output.size() <= kMaxOutput && read_more(proxy_.output.get(), output, until)) continue;
      has_ended_ = has_ended_ || steady_clock::now() < until;
      return false;
    }
    return true;
  }
  void follow() {
    std::string text;
    for (SteadyTime until;; text.clear()) {
      until = steady_clock::now() + std::chrono::hours(1);
      if (!read_more(proxy_.output.get(), text, until)) return;
      tail_.add(text);
    }
  }
  [[nodiscard]] kube::Connection borrow() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (idle_.empty()) return {};
    kube::Connection connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
  }
  void give_back(kube::Connection connection) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    idle_.push_back(std::move(connection));
  }

  std::unique_ptr<host::TemporaryDirectory> directory_;
  kube::ClusterAccess access_;
  BackgroundProgram proxy_;
  bool has_ended_ = false;  // before it served, or it said too much
  std::thread reader_;
  Tail tail_;
  Mutex mutex_;
  std::vector<kube::Connection> idle_ GUARDED_BY(mutex_);
};

}  // namespace

std::vector<std::string> ClusterFlags::words() const {
  std::vector<std::string> all;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) all.push_back(std::string(name) + '=' + value);
  };
  add("--kubeconfig", kubeconfig);
  add("--context", context);
  add("--cluster", cluster);
  add("--user", user);
  add("--as", as);
  for (const std::string& group : as_groups) add("--as-group", group);
  return all;
}

std::string failure_of(const ChildOutcome& kubectl) {
  if (kubectl.end == ChildOutcome::End::out_of_time) return "it did not end in time";
  const std::string words = complaint_of(kubectl);
  if (!words.empty()) return words;
  const char* how = kubectl.end == ChildOutcome::End::killed ? "it was ended by signal " : "it ended with status ";
  return how + std::to_string(kubectl.status) + " and said nothing";
}

Result<std::string> find_on_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  const std::string folders = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  for (const std::string_view folder : split(folders, ':')) {
    const std::string file = (folder.empty() ? "." : std::string(folder)) + '/' + name;
    struct stat info {};
    if (::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return fail(ErrorCode::not_found, name + " is not on PATH; install it, or read a dump with --from");
}

Result<std::unique_ptr<ClusterReader>> open_kubectl(const ClusterFlags& flags, std::shared_ptr<Waits> waits) {
  TRY_ASSIGN(const std::string program, find_on_path("kubectl"));
  auto proxy = std::make_unique<ProxyCalls>(program, flags, waits);
  if (proxy->start()) return std::unique_ptr<ClusterReader>(std::move(proxy));
  return std::unique_ptr<ClusterReader>(std::make_unique<RawCalls>(program, flags, std::move(waits)));
}

}  // namespace neuron::fleet
