// Attacks the agent at random for as long as it is told to, and says what broke: see stage.h for what is done to the
// node, judge.h for what must hold. Nothing is expected to break; the exit status is 1 when something did.
#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>

#include "test/attack/stage.h"

namespace {

constexpr std::array kTypes = {"trn1.32xlarge", "trn2.48xlarge", "inf2.48xlarge", "trn1.2xlarge", "p5.48xlarge"};
constexpr int kAttacksPerNode = 12;

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Attacks the agent on simulated nodes at random."};
  int seconds = 60;
  unsigned seed = 1;
  bool verbose = false;
  app.add_option("--seconds", seconds, "Start no new node after this time")->capture_default_str();
  app.add_option("--seed", seed, "Of the first node; each further node counts up")->capture_default_str();
  app.add_flag("-v,--verbose", verbose, "Print every attack");
  CLI11_PARSE(app, argc, argv);

  int attacks = 0;
  int broken = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  for (; std::chrono::steady_clock::now() < until; ++seed) {
    const std::string type = kTypes[seed % kTypes.size()];
    neuron::attack::Stage stage(type, seed);
    bool node_broke = false;
    for (int i = 0; i < kAttacksPerNode && !node_broke; ++i) {
      stage.attack();
      ++attacks;
      if (verbose) std::printf("seed %u %s: %s\n", seed, type.c_str(), stage.last().c_str());
      for (const std::string& complaint : stage.take_complaints()) {
        std::printf("BROKEN seed %u %s attack %d (%s): %s\n", seed, type.c_str(), i, stage.last().c_str(),
                    complaint.c_str());
        node_broke = true;
      }
    }
    if (node_broke) {
      ++broken;
      std::printf("--- the agent's log\n%s---\n", stage.agent_log().c_str());
    }
    std::fflush(stdout);
  }
  std::printf("%d attacks, %d nodes broke\n", attacks, broken);
  return broken == 0 ? 0 : 1;
}
