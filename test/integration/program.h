#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/fd.h"

namespace neuron::fakes {

// Both ends of a pipe. A full one has nobody who reads it.
struct TestPipe {
  Fd reading;
  Fd writing;

  TestPipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    reading = Fd(ends[0]);
    writing = Fd(ends[1]);
  }
  TestPipe& fill() {
    ::fcntl(writing.get(), F_SETFL, O_NONBLOCK);
    while (::write(writing.get(), "x", 1) == 1) {
    }
    ::fcntl(writing.get(), F_SETFL, 0);
    return *this;
  }
};

// One of the programs as a child process with the streams it is given; -1 is /dev/null. What cannot be done ends the
// test program. The destructor kills what still runs.
class Program {
 public:
  struct Streams {
    int in = -1;
    int out = -1;
    int err = -1;
  };

  // `words`: a program of bin/ and its arguments; the program's TMPDIR is `temporary`.
  Program(std::vector<std::string> words, const std::string& temporary, Streams streams) {
    words.front().insert(0, std::string(NEURON_BIN_DIR) + '/');
    words.insert(words.begin(), {"env", "TMPDIR=" + temporary});
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    const int given[] = {streams.in, streams.out, streams.err};
    for (int stream = 0; stream < 3; ++stream) {
      if (given[stream] < 0) posix_spawn_file_actions_addopen(&files, stream, "/dev/null", O_RDWR, 0);
      if (given[stream] >= 0) posix_spawn_file_actions_adddup2(&files, given[stream], stream);
    }
    if (::posix_spawnp(&pid_, argv[0], &files, nullptr, argv.data(), environ) != 0) std::abort();
    posix_spawn_file_actions_destroy(&files);
    pidfd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    if (!pidfd_.valid()) std::abort();
  }
  ~Program() {
    if (wait(std::chrono::milliseconds(0))) return;
    signal(SIGKILL);
    static_cast<void>(wait(std::chrono::seconds(10)));
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void signal(int number) const { ::kill(pid_, number); }
  // The exit status, or minus the signal that ended it; nullopt when it still runs after `timeout`.
  [[nodiscard]] std::optional<int> wait(std::chrono::milliseconds timeout) {
    if (ended_) return ended_;
    pollfd end{pidfd_.get(), POLLIN, 0};
    if (::poll(&end, 1, static_cast<int>(timeout.count())) <= 0) return std::nullopt;
    int status = 0;
    if (::waitpid(pid_, &status, 0) != pid_) std::abort();
    ended_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return ended_;
  }

 private:
  pid_t pid_ = -1;
  Fd pidfd_;
  std::optional<int> ended_;
};

}  // namespace neuron::fakes
