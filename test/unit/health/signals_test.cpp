#include "agent/health/signals.h"

#include <gtest/gtest.h>

#include <set>

namespace neuron::test {
namespace {

using model::Family;

health::Lifetime life_of(std::string_view name) {
  for (const health::DeviceSignal& signal : health::device_signals()) {
    if (signal.path.ends_with(name)) return signal.life;
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(Signals, VersionsAreReadLeniently) {
  EXPECT_EQ(health::parse_release("2.30.2.0"), (health::DriverRelease{2, 30, 2}));
  EXPECT_EQ(health::parse_release("2.28"), (health::DriverRelease{2, 28, 0}));
  for (const char* text : {"", "2", "2.x.8072.0", "two.1.1", "2..1", "2.-1.0", "99999999999.1.1"}) {
    EXPECT_EQ(health::parse_release(text), std::nullopt) << text;
  }
}

TEST(Signals, EachDriverHasItsFilesOnItsChips) {
  const health::Lifetime ecc = life_of("/sram_ecc_uncorrected");
  EXPECT_TRUE(health::must_be_there(ecc, health::DriverRelease{2, 14, 5}, Family::trainium1));
  EXPECT_FALSE(health::must_be_there(ecc, health::DriverRelease{2, 14, 4}, Family::trainium1));
  EXPECT_TRUE(health::must_be_there(ecc, health::DriverRelease{2, 31, 7}, Family::inferentia2))
      << "moved is missing too";
  EXPECT_FALSE(health::may_be_there(ecc, health::DriverRelease{2, 24, 7}, Family::inferentia));
  const health::Lifetime components = life_of("/unhealthy_components");
  EXPECT_TRUE(health::must_be_there(components, health::DriverRelease{2, 30, 2}, Family::trainium2));
  EXPECT_FALSE(health::may_be_there(components, health::DriverRelease{2, 30, 2}, Family::trainium1));
  EXPECT_FALSE(health::may_be_there(components, health::DriverRelease{2, 29, 0}, Family::trainium2));
  const health::Lifetime counts = life_of("/hbm_ecc_err_count");
  EXPECT_TRUE(health::must_be_there(counts, health::DriverRelease{2, 29, 0}, Family::trainium3));
  EXPECT_FALSE(health::must_be_there(counts, health::DriverRelease{2, 29, 0}, Family::trainium2)) << "nobody could say";
  EXPECT_TRUE(health::may_be_there(counts, health::DriverRelease{2, 29, 0}, Family::trainium2));
  EXPECT_FALSE(health::may_be_there(counts, health::DriverRelease{2, 30, 2}, Family::trainium3)) << "gone";
}

TEST(Signals, WithoutAVersionOrAChipNothingIsCertainAndMuchIsPossible) {
  const health::Lifetime ecc = life_of("/sram_ecc_uncorrected");
  EXPECT_FALSE(health::must_be_there(ecc, std::nullopt, Family::trainium1));
  EXPECT_FALSE(health::must_be_there(ecc, health::DriverRelease{2, 30, 2}, std::nullopt));
  EXPECT_TRUE(health::may_be_there(ecc, std::nullopt, Family::trainium1));
  EXPECT_TRUE(health::may_be_there(ecc, health::DriverRelease{2, 30, 2}, std::nullopt));
}

TEST(Signals, FilesThatAreThereTellTheLeastVersion) {
  std::vector<model::NeuronDevice> devices(2);
  EXPECT_EQ(health::release_of("2.x.8072.0", devices), std::nullopt);
  devices[1].cores.resize(1);
  devices[1].cores[0].hw_nc_ue_error = 0;
  EXPECT_EQ(health::release_of("2.x.8072.0", devices), (health::DriverRelease{2, 19, 0}));
  devices[0].signals.mem_ecc_corrected = 0;
  EXPECT_EQ(health::release_of("", devices), (health::DriverRelease{2, 30, 2}));
  EXPECT_EQ(health::release_of("2.28.0.0", devices), (health::DriverRelease{2, 28, 0})) << "its own word goes first";
}

TEST(Signals, EveryRowIsWhole) {
  std::set<std::string_view> paths;
  for (const health::DeviceSignal& signal : health::device_signals()) {
    EXPECT_TRUE(paths.insert(signal.path).second) << signal.path;
    EXPECT_LT(signal.life.since, signal.life.until) << signal.path;
    const bool has_target = signal.kind != health::SignalKind::components && signal.kind != health::SignalKind::reset;
    EXPECT_EQ(signal.value != nullptr, has_target) << signal.path;
    EXPECT_FALSE(signal.meaning.empty()) << signal.path;
    EXPECT_TRUE(signal.weight == health::Weight::optional || signal.reason != nullptr) << signal.path;
    EXPECT_TRUE(signal.reason == nullptr || !signal.reason->action.empty()) << signal.path;
  }
  for (const health::CoreSignal& signal : health::core_signals()) {
    EXPECT_TRUE(paths.insert(signal.path).second) << signal.path;
    EXPECT_NE(signal.value, nullptr) << signal.path;
    EXPECT_FALSE(signal.meaning.empty()) << signal.path;
    EXPECT_EQ(signal.weight == health::Weight::required, signal.reason != nullptr) << signal.path;
  }
}

}  // namespace
}  // namespace neuron::test
