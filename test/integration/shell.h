#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace neuron::fakes {

struct Ended {
  int status = -1;     // the exit status; -1 when a signal ended it
  std::string output;  // standard output, or with "2>&1" both
};

// Through the shell, as people call it.
inline Ended run_line(const std::string& line) {
  std::FILE* pipe = ::popen(line.c_str(), "r");
  Ended ended;
  char buffer[4096];
  for (std::size_t got = 1; got > 0;) {
    got = std::fread(buffer, 1, sizeof buffer, pipe);
    ended.output.append(buffer, got);
  }
  const int status = ::pclose(pipe);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

}  // namespace neuron::fakes
