#include "test/integration/agent_process.h"

#include <fstream>
#include <sstream>

#include "test/fakes/paths.h"

namespace neuron::fakes {
namespace {

std::vector<std::string> command_of(std::vector<std::string> words, const std::vector<std::string>& arguments) {
  words.insert(words.end(), {bin_dir() + "/neuron-agent", "run"});
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

Fd open_log(const std::string& path) {
  return Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
}

}  // namespace

AgentProcess::AgentProcess(const std::vector<std::string>& arguments, std::string log_path,
                           std::vector<std::string> wrapper)
    : log_path_(std::move(log_path)),
      program_(command_of(std::move(wrapper), arguments), {STDIN_FILENO, STDOUT_FILENO, open_log(log_path_).get()}) {}

std::string AgentProcess::log() const {
  std::ostringstream text;
  text << std::ifstream(log_path_).rdbuf();
  return text.str();
}

}  // namespace neuron::fakes
