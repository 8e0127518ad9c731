#include "tools/neuron-gather/reading_watch.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

#include "agent/base/fd.h"
#include "agent/base/parse.h"

namespace neuron::gather {

struct ReadingWatch::Shared {
  std::atomic<unsigned long> steps{0};
  std::atomic<bool> done{false};
  std::array<char, 1024> path{};  // read by the parent only while the child does not move
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
  if (std::any_of(skipped_.begin(), skipped_.end(), holds)) return false;
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

int complain(const std::string& what) {
  std::fprintf(stderr, "neuron-gather: %s\n", what.c_str());
  return -1;
}

// The exit status of a child that ended.
int status_of(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return complain("the reading process was lost");
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return complain("the reading process was ended by signal " + std::to_string(WTERMSIG(status)));
}

// nullopt: it hangs.
std::optional<int> await(pid_t child, const Fd& handle, const ReadingWatch& watch, std::chrono::milliseconds budget) {
  unsigned long steps = watch.steps();
  for (;;) {
    pollfd ended{handle.get(), POLLIN, 0};
    const int ready = ::poll(&ended, 1, watch.is_done() ? -1 : static_cast<int>(budget.count()));
    if (ready > 0) return status_of(child);
    if (ready < 0 && errno != EINTR) return complain("the reading process cannot be watched");
    const unsigned long now = watch.steps();
    if (ready == 0 && now == steps && !watch.is_done()) return std::nullopt;
    steps = now;
  }
}

}  // namespace

int run_watched(const std::function<int(ReadingWatch&)>& work, std::chrono::milliseconds budget) {
  std::vector<std::string> skipped;
  while (skipped.size() <= kMaxHung) {
    ReadingWatch watch(skipped);
    const pid_t child = ::fork();
    if (child < 0) return complain("the reading process could not be started");
    if (child == 0) {
      const int code = work(watch);
      std::fflush(nullptr);
      ::_exit(code);
    }
    const Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    const auto code = handle.valid() ? await(child, handle, watch, budget) : status_of(child);
    if (code) return *code;
    const std::string path = watch.last_path();
    complain(printable(path) + " did not answer; reading again without it");
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, WNOHANG);
    skipped.push_back(part_of(path));
  }
  return complain("too much of this machine does not answer");
}

}  // namespace neuron::gather
