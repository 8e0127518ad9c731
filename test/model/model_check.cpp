// Model check of "one silicon, several resources" (docs/resources.md#same-hardware): random events on a node, rules
// checked after each.
//   model_check [--runs N] [--events M] [--first-seed S]     N nodes with M events each
//   model_check --seed S --events M                          one node again, its last steps printed
// Either with [--late P] [--restarts P]: World::Odds.
// Exit status 0: no rule was broken; 1: one was (seed and steps are printed); 2: usage.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdint>
#include <string_view>

#include "agent/base/parse.h"
#include "test/model/world.h"

namespace {

using neuron::check::Tally;
using neuron::check::World;

struct Arguments {
  std::uint64_t runs = 100, events = 2000, first_seed = 1;
  World::Odds odds;
  bool replay = false;
};

bool parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const auto value = neuron::parse_u64(argv[i + 1]);
    if (!value) return false;
    if (name == "--runs") {
      arguments.runs = *value;
    } else if (name == "--events") {
      arguments.events = *value;
    } else if (name == "--late" && *value <= 100) {
      arguments.odds.late = static_cast<int>(*value);
    } else if (name == "--restarts" && *value <= 100) {
      arguments.odds.restarts = static_cast<int>(*value);
    } else if (name == "--first-seed" || name == "--seed") {
      arguments.first_seed = *value;
      if (name == "--seed") arguments.replay = true;
    } else {
      return false;
    }
  }
  return argc % 2 == 1;
}

int replay(std::uint64_t seed, std::uint64_t events, World::Odds odds) {
  World world(seed, true, odds);
  const auto broken = world.run(events);
  for (const std::string& line : world.trace()) fmt::print("{}\n", line);
  fmt::print("seed {} events {}: {}\n", seed, world.tally().events, broken.value_or("no rule broken"));
  return broken ? 1 : 0;
}

void print(const Tally& tally, const Arguments& arguments) {
  fmt::print(
      "seeds {}-{}: {} events, {} more while a call was in flight; {} agent starts, {} kubelet restarts, {} slow "
      "checkpoint writes, {} quiet checks\n",
      arguments.first_seed, arguments.first_seed + arguments.runs - 1, tally.events, tally.in_flight_events,
      tally.agent_starts, tally.kubelet_starts, tally.late_writes, tally.settled);
  fmt::print("{} pods admitted, {} containers, {} of them with both resources\n", tally.admitted,
             tally.truth.containers, tally.admitted_both);
  fmt::print("excepted: {} pairs given one id by the kubelet itself, {} containers a restarted kubelet had forgotten\n",
             tally.truth.double_given, tally.truth.forgotten);
  fmt::print("moments at which the agent did not know of a running container: {}, the longest {} ms\n",
             tally.ledger_gaps, tally.longest_gap_ms);
  for (const auto& [kind, count] : tally.offers) fmt::print("agents that offer {}: {}\n", kind, count);
  for (const auto& [kind, count] : tally.refused) fmt::print("refused {:>8}  {}\n", count, kind);
  fmt::print("longest refusal on behalf of a container that had ended: {} ms\n", tally.oldest_refusal_ms);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    fmt::print(stderr,
               "usage: model_check [--runs N] [--events M] [--first-seed S | --seed S] [--late P] [--restarts P]\n");
    return 2;
  }
  spdlog::set_level(spdlog::level::off);
  if (arguments.replay) return replay(arguments.first_seed, arguments.events, arguments.odds);
  Tally sum;
  for (std::uint64_t i = 0; i < arguments.runs; ++i) {
    const std::uint64_t seed = arguments.first_seed + i;
    World world(seed, false, arguments.odds);
    const auto broken = world.run(arguments.events);
    sum.add(world.tally());
    if (!broken) continue;
    fmt::print("seed {} broke a rule; again with: model_check --seed {} --events {} --late {} --restarts {}\n", seed,
               seed, world.tally().events, arguments.odds.late, arguments.odds.restarts);
    return replay(seed, arguments.events, arguments.odds);
  }
  print(sum, arguments);
  return 0;
}
