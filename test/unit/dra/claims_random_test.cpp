// Claims with shares at random: what a scheduler counts, and what Prepare makes of it (docs/dra-partitions.md#shares).
#include <bit>
#include <cstdlib>
#include <random>

#include "agent/base/parse.h"
#include "test/unit/dra/shares_fixture.h"

namespace neuron::plugin::dra {
namespace {

constexpr int kDevices = 16, kCores = 4;  // trn2.48xlarge with two physical cores per logical core

int claims_to_make() {
  constexpr int kFew = 2000, kMost = 10'000'000;
  const char* given = std::getenv("NEURON_CLAIMS");  // test/deep.sh --only shares
  return given == nullptr ? kFew : parse_int(given, 1, kMost).value_or(kFew);
}

unsigned bit(int core) {
  return 1U << static_cast<unsigned>(core);
}

// Whether so many of these cores are one range.
bool has_run(unsigned cores, int count) {
  for (int first = 0; first + count <= kCores; ++first) {
    const unsigned run = (bit(count) - 1) << static_cast<unsigned>(first);
    if ((cores & run) == run) return true;
  }
  return false;
}

class RandomShares : public ClaimShares {
 protected:
  struct Part {
    int device = 0;
    int cores = 0;
    unsigned given = 0;  // which ones
  };
  struct Held {
    std::string name;
    std::vector<Part> parts;
  };

  int draw(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }
  [[nodiscard]] unsigned used(int device) const {
    unsigned cores = 0;
    for (const Held& held : held_) {
      for (const Part& part : held.parts) cores |= part.device == device ? part.given : 0U;
    }
    return cores;
  }
  // What a scheduler counts: the capacity is that of the healthy cores, whoever has the others.
  [[nodiscard]] int free_capacity(int device) const {
    return std::popcount(healthy(device)) - std::popcount(used(device));
  }
  [[nodiscard]] unsigned healthy(int device) const {
    const auto at = unhealthy_.find(device);
    return (bit(kCores) - 1) & ~(at == unhealthy_.end() ? 0U : bit(at->second));
  }
  [[nodiscard]] int first_fit(int cores, const std::vector<Part>& beside) const {
    for (int device = 0; device < kDevices; ++device) {
      const bool is_beside = std::ranges::any_of(beside, [&](const Part& part) { return part.device == device; });
      if (!is_beside && free_capacity(device) >= cores) return device;
    }
    return -1;
  }

  // The cores of the claim on each device, by its record.
  [[nodiscard]] std::vector<Part> recorded(const std::string& name) {
    std::vector<Part> parts;
    const auto view = agent_->store.view();
    const auto record = view->records.find(uid_of(name));
    if (record == view->records.end()) return parts;
    for (const HeldDevice& held : record->second->held().devices) {
      Part part{held.device, kCores, bit(kCores) - 1};
      if (!held.places.empty()) part.given = 0;
      for (const int place : held.places) part.given |= bit(place / 2);
      if (!held.places.empty()) part.cores = static_cast<int>(held.places.size()) / 2;
      parts.push_back(part);
    }
    return parts;
  }
  void make() {
    Held claim{"c" + std::to_string(++number_), {}};
    const int parts = draw(6) == 0 ? 1 + draw(3) : 1;
    const int cores = draw(5) == 0 ? kCores : 1 + draw(kCores - 1);
    std::vector<ResultText> results;
    for (int i = 0; i < parts; ++i) {
      const int device = first_fit(cores, claim.parts);
      if (device < 0) return;
      claim.parts.push_back({device, cores, 0});
      results.push_back(share("cores", device, cores, claim.name + "-" + std::to_string(i)));
    }
    put_claim(claim.name, results);
    const PrepareAnswer answer = prepare(claim.name);
    ASSERT_EQ(answer.error, "") << claim.name;
    judge(claim);
    held_.push_back(std::move(claim));
  }
  void judge(Held& claim) {
    const std::vector<Part> given = recorded(claim.name);
    ASSERT_EQ(given.size(), claim.parts.size());
    std::ranges::sort(claim.parts, {}, &Part::device);
    for (std::size_t i = 0; i < given.size(); ++i) {
      Part& part = claim.parts[i];
      const unsigned before = used(part.device);
      ASSERT_EQ(given[i].device, part.device);
      ASSERT_EQ(std::popcount(given[i].given), part.cores) << claim.name;
      ASSERT_EQ(given[i].given & before, 0U) << claim.name << " has a core of another claim";
      ASSERT_EQ(given[i].given & ~healthy(part.device), 0U) << claim.name << " has an unhealthy core";
      if (claim.parts.size() == 1 && has_run(healthy(part.device) & ~before, part.cores)) {
        EXPECT_TRUE(has_run(given[i].given, part.cores)) << claim.name << " could have had one range";
      }
      part.given = given[i].given;
    }
  }
  void end(std::size_t at) {
    const std::string name = held_[at].name;
    ASSERT_EQ(unprepare(name), "");
    ASSERT_TRUE(recorded(name).empty());
    api_.drop(claim_path(name));
    api_.drop("/api/v1/namespaces/default/pods/pod-" + name);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  // The kubelet asks again, as it does after its own restart.
  void ask_again(const Held& held) {
    ASSERT_EQ(prepare(held.name).error, "");
    const std::vector<Part> now = recorded(held.name);
    ASSERT_EQ(now.size(), held.parts.size());
    for (std::size_t i = 0; i < now.size(); ++i) ASSERT_EQ(now[i].given, held.parts[i].given) << held.name;
  }
  void look_on() {
    ResultText look = share("look", draw(kDevices), 0, "look");
    look.more["adminAccess"] = true;
    put_claim("look", {look});
    ASSERT_EQ(prepare("look").error, "");
    ASSERT_TRUE(recorded("look").empty()) << "it holds something";
    ASSERT_EQ(unprepare("look"), "");
  }
  void change_health() {
    if (unhealthy_.size() >= 3) {
      heal(unhealthy_.begin()->first);
      unhealthy_.erase(unhealthy_.begin());
      return;
    }
    const int device = draw(kDevices), core = draw(kCores);
    if (unhealthy_.contains(device)) return;
    unhealthy_[device] = core;
    make_core_ill(device, core);
  }
  void step() {
    const int what = draw(100);
    if (what < 45) return make();
    if (held_.empty()) return;
    const std::size_t one = static_cast<std::size_t>(draw(static_cast<int>(held_.size())));
    if (what < 85) return end(one);
    if (what < 93) return ask_again(held_[one]);
    if (what < 96) return look_on();
    if (what < 98) return change_health();
    restart();
  }

  std::mt19937 random_{21};
  std::vector<Held> held_;
  std::map<int, int> unhealthy_;  // one core by device
  int number_ = 0;
};

TEST_F(RandomShares, NoCoreIsInTwoClaimsAndEachStaysWithItsOwn) {
  const int claims = claims_to_make();
  while (number_ < claims && !HasFatalFailure()) step();
  for (const Held& held : held_) ask_again(held);
  while (!held_.empty() && !HasFatalFailure()) end(0);
  EXPECT_EQ(prepared(), 0U);
}

}  // namespace
}  // namespace neuron::plugin::dra
