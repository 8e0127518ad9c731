#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tools/neuron-agent/options.h"

namespace neuron::agent {

// The options of `run` as a command line gives them, or why not.
struct Parsed {
  Options options;
  std::string error;  // of parsing, else of whoever settles them
};

inline Parsed parse_options(std::vector<std::string> words) {
  Parsed parsed;
  CLI::App app;
  add_options(app, Command::run, parsed.options);
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    parsed.error = error.what();
  }
  return parsed;
}

}  // namespace neuron::agent
