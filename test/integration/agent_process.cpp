#include "test/integration/agent_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

namespace neuron::fakes {
namespace {

[[noreturn]] void give_up(const std::string& what) {
  std::perror(what.c_str());
  std::abort();
}

}  // namespace

AgentProcess::AgentProcess(const std::vector<std::string>& arguments, std::string log_path,
                           std::vector<std::string> environment)
    : log_path_(std::move(log_path)) {
  std::vector<std::string> words = {std::string(NEURON_BIN_DIR) + "/neuron-agent", "run"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<char*> variables;
  for (std::string& variable : environment) variables.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  variables.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (posix_spawn(&pid_, argv[0], &files, nullptr, argv.data(), variables.data()) != 0)
    give_up("posix_spawn " + words[0]);
  posix_spawn_file_actions_destroy(&files);
  pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (pidfd_ < 0) give_up("pidfd_open");
}

AgentProcess::~AgentProcess() {
  if (running()) {
    signal(SIGKILL);
    static_cast<void>(wait(std::chrono::seconds(10)));
  }
  ::close(pidfd_);
}

void AgentProcess::signal(int number) const {
  if (::kill(pid_, number) != 0) give_up("kill");
}

std::optional<int> AgentProcess::wait(std::chrono::milliseconds timeout) {
  if (ended_) return ended_;
  pollfd fd{pidfd_, POLLIN, 0};
  if (::poll(&fd, 1, static_cast<int>(timeout.count())) <= 0) return std::nullopt;
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) give_up("waitpid");
  ended_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return ended_;
}

std::string AgentProcess::log() const {
  std::ostringstream text;
  text << std::ifstream(log_path_).rdbuf();
  return text.str();
}

}  // namespace neuron::fakes
