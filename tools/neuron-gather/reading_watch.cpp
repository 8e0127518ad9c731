#include "tools/neuron-gather/reading_watch.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>

#include "agent/base/child_process.h"
#include "agent/base/fd.h"
#include "agent/base/parse.h"

namespace neuron::gather {

struct ReadingWatch::Shared {
  std::atomic<unsigned long> steps{0};
  std::atomic<bool> done{false};
  std::array<char, 1024> path{};  // read by the parent only while the child does not move
  std::atomic<bool> writes{false};
  bool keeps_folder = false;  // this and the next: written before `writes` is
  std::array<char, 4096> output{};
};

void ReadingWatch::Unmap::operator()(Shared* shared) const {
  ::munmap(shared, sizeof(Shared));
}

ReadingWatch::ReadingWatch(std::vector<std::string> skipped) : skipped_(std::move(skipped)) {
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) shared_.reset(new (memory) Shared);
}

bool ReadingWatch::permit(const std::string& path) {
  const auto holds = [&](const std::string& part) {
    return path.starts_with(part) && (path.size() == part.size() || path[part.size()] == '/');
  };
  if (std::ranges::any_of(skipped_, holds)) return false;
  if (!shared_) return true;
  const std::size_t length = std::min(path.size(), shared_->path.size() - 1);
  std::memcpy(shared_->path.data(), path.data(), length);
  shared_->path[length] = '\0';
  ++shared_->steps;
  return true;
}

void ReadingWatch::reading_done() {
  if (shared_) shared_->done = true;
}

bool ReadingWatch::begin_output(const Unfinished& unfinished) {
  if (!shared_) return true;
  if (unfinished.path.size() >= shared_->output.size()) return false;
  std::memcpy(shared_->output.data(), unfinished.path.c_str(), unfinished.path.size() + 1);
  shared_->keeps_folder = unfinished.keeps_folder;
  shared_->writes = true;
  return true;
}

Unfinished ReadingWatch::output() const {
  if (!shared_ || !shared_->writes) return {};
  return {shared_->output.data(), shared_->keeps_folder};
}

unsigned long ReadingWatch::steps() const {
  return shared_ ? shared_->steps.load() : 0;
}

bool ReadingWatch::is_done() const {
  return !shared_ || shared_->done;
}

std::string ReadingWatch::last_path() const {
  return shared_ ? std::string(shared_->path.data()) : "";
}

std::string part_of(const std::string& path) {
  for (const std::string_view folder : {"/neuron_device/", "/infiniband/"}) {
    const auto at = path.find(folder);
    if (at == std::string::npos) continue;
    const auto end = path.find('/', at + folder.size());
    return path.substr(0, end);
  }
  return path;
}

namespace {

constexpr std::size_t kMaxHung = 24;
constexpr int kSignalled = 128;  // as shells count

int complain(const std::string& what) {
  std::fprintf(stderr, "neuron-gather: %s\n", what.c_str());
  return -1;
}

// Blocks the signals that end the program and reads them from a signalfd. Ignored ones (nohup) stay ignored.
class EndSignals {
 public:
  EndSignals() {
    ::sigemptyset(&signals_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction action {};
      if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) ::sigaddset(&signals_, number);
    }
    ::sigprocmask(SIG_BLOCK, &signals_, &before_);
    fd_ = Fd(::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd_.valid()) ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  ~EndSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }  // -1 when there is no signalfd: then the signals end the process
  // The pending signal; 0 for none.
  [[nodiscard]] int take() const {
    signalfd_siginfo info{};
    const bool came = fd_.valid() && ::read(fd_.get(), &info, sizeof info) == sizeof info;
    return came ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t signals_{};
  sigset_t before_{};
  Fd fd_;
};

// The exit status of a child that ended.
int status_of(Child& child, const ReadingWatch& watch) {
  const auto status = child.wait(SteadyTime::max());
  if (!status) return complain("the reading process was lost");
  if (*status >= 0) return *status;
  discard(watch.output());
  return complain("the reading process was terminated by signal " + std::to_string(-*status));
}

// nullopt: it hangs.
std::optional<int> await(Child& child, const ReadingWatch& watch, const EndSignals& signals,
                         std::chrono::milliseconds budget) {
  unsigned long steps = watch.steps();
  for (;;) {
    std::array<pollfd, 2> sources = {{{child.handle(), POLLIN, 0}, {signals.fd(), POLLIN, 0}}};
    const int wait = watch.is_done() ? -1 : static_cast<int>(budget.count());
    const int ready = ::poll(sources.data(), sources.size(), wait);
    if (ready < 0 && errno != EINTR) return complain("the reading process cannot be watched");
    if (const int signal = signals.take(); signal != 0) {
      child.kill();
      discard(watch.output());
      return kSignalled + signal;
    }
    if (ready > 0) return status_of(child, watch);
    const unsigned long now = watch.steps();
    if (ready == 0 && now == steps && !watch.is_done()) return std::nullopt;
    steps = now;
  }
}

}  // namespace

int run_watched(const std::function<int(ReadingWatch&)>& work, std::chrono::milliseconds budget) {
  const EndSignals signals;
  std::vector<std::string> skipped;
  while (skipped.size() <= kMaxHung) {
    ReadingWatch watch(skipped);
    const auto pid = fork_child([&] {
      const int code = work(watch);
      std::fflush(nullptr);
      return code;
    });
    if (!pid) return complain("the reading process could not be started");
    Child child(*pid);
    const auto code = child.handle() >= 0 ? await(child, watch, signals, budget) : status_of(child, watch);
    if (code) return *code;
    const std::string path = watch.last_path();
    complain(printable(path) + " did not answer; rereading without it");
    skipped.push_back(part_of(path));
  }
  return complain("too many parts of this machine do not answer");
}

}  // namespace neuron::gather
