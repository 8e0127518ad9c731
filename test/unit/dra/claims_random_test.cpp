// Claims with shares at random: what a scheduler counts, and what Prepare makes of it (docs/dra-partitions.md#shares).
#include <bit>
#include <cstdlib>
#include <random>

#include "agent/base/parse.h"
#include "test/unit/dra/shares_fixture.h"

namespace neuron::plugin::dra {
namespace {

constexpr int kDevices = 16, kPlaces = 8;  // trn2.48xlarge: physical cores per device

int claims_to_make() {
  constexpr int kFew = 2000, kMost = 10'000'000;
  const char* given = std::getenv("NEURON_CLAIMS");  // test/deep.sh --only shares
  return given == nullptr ? kFew : parse_int(given, 1, kMost).value_or(kFew);
}

unsigned bit(int place) {
  return 1U << static_cast<unsigned>(place);
}

// So many places from there on.
unsigned run_of(int first, int count) {
  return (bit(count) - 1) << static_cast<unsigned>(first);
}

class RandomShares : public ClaimShares {
 protected:
  struct Part {
    int device = 0;
    int cores = 0;
    unsigned given = 0;  // places
  };
  struct Held {
    std::string name;
    std::string pod;
    std::vector<Part> parts;
  };

  int draw(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }
  [[nodiscard]] int cores_per_device() const { return kPlaces / lnc_; }
  [[nodiscard]] unsigned used(int device) const {
    unsigned places = device == plugin_device_ ? plugin_places_ : 0U;
    for (const Held& held : held_) {
      for (const Part& part : held.parts) places |= part.device == device ? part.given : 0U;
    }
    return places;
  }
  [[nodiscard]] unsigned healthy(int device) const {
    const auto at = unhealthy_.find(device);
    return run_of(0, kPlaces) & ~(at == unhealthy_.end() ? 0U : at->second);
  }
  // How many logical cores these places are, and whether so many of them are one range.
  [[nodiscard]] int cores_in(unsigned places) const {
    int count = 0;
    for (int first = 0; first < kPlaces; first += lnc_) count += (places & run_of(first, lnc_)) == run_of(first, lnc_);
    return count;
  }
  [[nodiscard]] bool has_range(unsigned places, int cores) const {
    for (int first = 0; first + cores * lnc_ <= kPlaces; first += lnc_) {
      const unsigned range = run_of(first, cores * lnc_);
      if ((places & range) == range) return true;
    }
    return false;
  }
  // What a scheduler counts: the capacity is that of the healthy cores, whoever has the others. It knows most
  // containers of a device plugin by a taint, and those that have just begun not at all.
  int first_fit(int cores, const std::vector<Held>& claims) {
    for (int device = 0; device < kDevices; ++device) {
      int left = cores_in(healthy(device));
      for (const Held& held : held_) left -= cores_of(held, device);
      for (const Held& claim : claims) left -= cores_of(claim, device);
      const bool is_beside = cores_of(claims.back(), device) > 0;
      const bool is_tainted = device == plugin_device_ && draw(4) > 0;
      if (!is_beside && !is_tainted && left >= cores) return device;
    }
    return -1;
  }
  static int cores_of(const Held& claim, int device) {
    int cores = 0;
    for (const Part& part : claim.parts) cores += part.device == device ? part.cores : 0;
    return cores;
  }

  // The places of the claim on each device, by its record.
  [[nodiscard]] std::vector<Part> recorded(const std::string& name) {
    std::vector<Part> parts;
    const auto view = agent_->store.view();
    const auto record = view->records.find(uid_of(name));
    if (record == view->records.end()) return parts;
    for (const HeldDevice& held : record->second->held().devices) {
      Part part{held.device, 0, held.places.empty() ? run_of(0, kPlaces) : 0U};
      for (const int place : held.places) part.given |= bit(place);
      parts.push_back(part);
    }
    return parts;
  }

  // The claims of one pod; none where they do not fit.
  std::vector<Held> drawn() {
    std::vector<Held> claims;
    const std::string pod = "pod-c" + std::to_string(number_ + 1);
    for (int count = draw(8) == 0 ? 2 : 1; count > 0; --count) {
      claims.push_back({"c" + std::to_string(++number_), pod, {}});
      const int cores = draw(5) == 0 ? cores_per_device() : 1 + draw(cores_per_device() - 1);
      for (int parts = draw(6) == 0 ? 1 + draw(3) : 1; parts > 0; --parts) {
        const int device = first_fit(cores, claims);
        if (device < 0) return {};
        claims.back().parts.push_back({device, cores, 0});
      }
    }
    return claims;
  }
  // One container of the pod uses all of them; a claim may be another pod's as well.
  void put(const std::vector<Held>& claims) {
    std::vector<std::pair<std::string, std::string>> uses;
    for (const Held& claim : claims) {
      std::vector<ResultText> results;
      for (const Part& part : claim.parts) {
        results.push_back(share("cores", part.device, part.cores, claim.name + "-" + std::to_string(results.size())));
      }
      json object = claim_json(claim.name, uid_of(claim.name), results);
      reserve_for(object, claim.pod, claim.pod + "-uid");
      if (claims.size() == 1 && draw(6) == 0) {
        reserve_for(object, claim.pod + "-too", claim.pod + "-too-uid");
        put_pod(claim.pod + "-too", {{"main", {{claim.name, ""}}}}, claim.pod + "-too-uid");
      }
      api_.put(claim_path(claim.name), object);
      uses.emplace_back(claim.name, "");
    }
    put_pod(claims.front().pod, {{"main", uses}}, claims.front().pod + "-uid");
  }
  void drop(const Held& claim) {
    api_.drop(claim_path(claim.name));
    for (const char* end : {"", "-too"}) api_.drop("/api/v1/namespaces/default/pods/" + claim.pod + end);
  }
  [[nodiscard]] bool can_have(const std::vector<Held>& claims) const {
    for (int device = 0; device < kDevices; ++device) {
      int asked = 0;
      for (const Held& claim : claims) asked += cores_of(claim, device);
      if (asked > cores_in(healthy(device) & ~used(device))) return false;
    }
    return true;
  }
  void make() {
    std::vector<Held> claims = drawn();
    if (claims.empty()) return;
    put(claims);
    std::vector<std::string> names;
    for (const Held& claim : claims) names.push_back(claim.name);
    const bool fits = can_have(claims);
    const bool is_alone = claims.size() == 1 && claims.front().parts.size() == 1;
    auto answers = prepare_all(names);
    for (Held& claim : claims) {
      const std::string& error = answers.at(uid_of(claim.name)).error;
      if (!fits) {
        ++refused_;
        ASSERT_NE(error, "") << claim.name;
        ASSERT_TRUE(recorded(claim.name).empty()) << claim.name << " holds something";
        drop(claim);
        continue;
      }
      ASSERT_EQ(error, "") << claim.name;
      judge(claim, is_alone);
      held_.push_back(claim);
    }
  }
  void judge(Held& claim, bool is_alone) {
    const std::vector<Part> given = recorded(claim.name);
    ASSERT_EQ(given.size(), claim.parts.size());
    std::ranges::sort(claim.parts, {}, &Part::device);
    for (std::size_t i = 0; i < given.size(); ++i) {
      Part& part = claim.parts[i];
      const unsigned before = used(part.device);
      ASSERT_EQ(given[i].device, part.device);
      ASSERT_EQ(std::popcount(given[i].given), part.cores * lnc_) << claim.name;
      ASSERT_EQ(cores_in(given[i].given), part.cores) << claim.name << " has parts of cores";
      ASSERT_EQ(given[i].given & before, 0U) << claim.name << " has a core of another claim or container";
      ASSERT_EQ(given[i].given & ~healthy(part.device), 0U) << claim.name << " has an unhealthy core";
      if (is_alone && has_range(healthy(part.device) & ~before, part.cores)) {
        EXPECT_TRUE(has_range(given[i].given, part.cores)) << claim.name << " could have had one range";
      }
      part.given = given[i].given;
    }
  }
  // A pod's claims end with it, one after the other.
  void end(std::size_t at) {
    const std::string pod = held_[at].pod;
    for (const Held& held : held_) {
      if (held.pod != pod) continue;
      ASSERT_EQ(unprepare(held.name), "");
      ASSERT_TRUE(recorded(held.name).empty());
    }
    for (const Held& held : held_) {
      if (held.pod == pod) drop(held);
    }
    std::erase_if(held_, [&](const Held& held) { return held.pod == pod; });
  }
  // The kubelet asks again, as it does after its own restart and for another pod of the claim.
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
    const int device = draw(kDevices), core = draw(cores_per_device());
    if (unhealthy_.contains(device)) return;
    unhealthy_[device] = run_of(core * lnc_, lnc_);
    make_core_ill(device, core);
  }
  // A container of a device plugin, from before the node served claims, takes idle cores of a device; or ends.
  void change_plugin() {
    plugin_holders_ = PluginHolders();
    if (std::exchange(plugin_device_, -1) >= 0) return;
    const int device = draw(kDevices);
    unsigned places = 0;
    for (int first = 0; first < kPlaces; first += lnc_) {
      const unsigned core = run_of(first, lnc_);
      if ((used(device) & core) == 0 && draw(2) == 0) places |= core;
    }
    if (places == 0) return;
    plugin_device_ = device;
    plugin_places_ = places;
    HeldDevice held{device, {}};
    for (int place = 0; place < kPlaces; ++place) {
      if ((places & bit(place)) != 0) held.places.push_back(place);
    }
    plugin_holders_ = PluginHolders{{"default/old/main", "aws.amazon.com/neuroncore", false, {{held}, {}}}};
  }
  // While cores are held by the numbers of one LNC none is given by those of another, and each claim keeps its own.
  void change_lnc() {
    const int before = std::exchange(lnc_, 3 - lnc_);
    set_lnc(lnc_);
    if (held_.empty()) return;
    for (const Held& held : held_) ask_again(held);
    const std::string name = "c" + std::to_string(++number_);
    for (int device = 0; device < kDevices; ++device) {
      if (used(device) != 0) continue;
      EXPECT_NE(put_and_prepare(name, device, 1), "");
      EXPECT_TRUE(recorded(name).empty()) << name << " holds something";
      drop({name, "pod-" + name, {}});
      break;
    }
    if (draw(2) == 0) {
      while (!held_.empty() && !HasFatalFailure()) end(0);
      return;
    }
    lnc_ = before;
    set_lnc(lnc_);
  }
  void set_lnc(int lnc) {
    change_node([&](model::HostScan& host) { host.lnc = {lnc, model::Origin::live}; });
  }
  void step() {
    const int what = draw(200);
    if (what < 90) return make();
    if (what < 94) return change_plugin();
    if (what < 95) return change_lnc();
    if (held_.empty()) return;
    const std::size_t one = static_cast<std::size_t>(draw(static_cast<int>(held_.size())));
    if (what < 170) return end(one);
    if (what < 186) return ask_again(held_[one]);
    if (what < 192) return look_on();
    if (what < 196) return change_health();
    restart();
  }

  std::mt19937 random_{21};
  std::vector<Held> held_;
  std::map<int, unsigned> unhealthy_;  // places of one core by device
  int plugin_device_ = -1;             // none
  unsigned plugin_places_ = 0;
  int lnc_ = 2;
  int number_ = 0;
  int refused_ = 0;  // that a device plugin's container was quicker than
};

TEST_F(RandomShares, NoCoreIsInTwoClaimsAndEachStaysWithItsOwn) {
  const int claims = claims_to_make();
  while (number_ < claims && !HasFatalFailure()) step();
  for (const Held& held : held_) ask_again(held);
  while (!held_.empty() && !HasFatalFailure()) end(0);
  EXPECT_EQ(prepared(), 0U);
  EXPECT_GT(refused_, 0);
  EXPECT_LT(refused_, claims / 5);
}

}  // namespace
}  // namespace neuron::plugin::dra
