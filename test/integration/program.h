#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/base/child_process.h"
#include "agent/base/fd.h"
#include "test/fakes/paths.h"

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

// A program as a child process with the streams it is given; -1 is /dev/null. What cannot be done ends the test
// program. The destructor kills what still runs.
class Program {
 public:
  struct Streams {
    int in = -1;
    int out = -1;
    int err = -1;
  };

  // `words`: a command, found in PATH, and its arguments.
  Program(std::vector<std::string> words, Streams streams) : pid_(spawn(std::move(words), streams)), child_(pid_) {
    if (child_.handle() < 0) std::abort();
  }

  // `words`: a program of bin/ and its arguments; the program's TMPDIR is `temporary`.
  Program(std::vector<std::string> words, const std::string& temporary, Streams streams)
      : Program(of_bin(std::move(words), temporary), streams) {}

  void signal(int number) const { ::kill(pid_, number); }
  // The exit status, or minus the signal that ended it; nullopt when it still runs after `timeout`.
  [[nodiscard]] std::optional<int> wait(std::chrono::milliseconds timeout) {
    if (!ended_) ended_ = child_.wait(std::chrono::steady_clock::now() + timeout);
    return ended_;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  static std::vector<std::string> of_bin(std::vector<std::string> words, const std::string& temporary) {
    words.front().insert(0, bin_dir() + '/');
    words.insert(words.begin(), {"env", "TMPDIR=" + temporary});
    return words;
  }
  static pid_t spawn(std::vector<std::string> words, Streams streams) {
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
    pid_t pid = -1;
    if (::posix_spawnp(&pid, argv[0], &files, nullptr, argv.data(), environ) != 0) std::abort();
    posix_spawn_file_actions_destroy(&files);
    return pid;
  }

  pid_t pid_;
  Child child_;
  std::optional<int> ended_;
};

}  // namespace neuron::fakes
