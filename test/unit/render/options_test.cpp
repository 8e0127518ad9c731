#include "tools/neuron-ls/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace neuron::ls {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Result<Request> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "neuron-ls");
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

Options options_of(std::vector<const char*> arguments) {
  const auto request = parse(std::move(arguments));
  EXPECT_TRUE(request && std::holds_alternative<Options>(*request));
  return request ? std::get<Options>(*request) : Options{};
}

class LsOptions : public ::testing::Test {
 protected:
  void SetUp() override { ::unsetenv("NEURON_LS_ROOT"); }
  void TearDown() override { ::unsetenv("NEURON_LS_ROOT"); }
};

TEST_F(LsOptions, Defaults) {
  const Options options = options_of({});
  EXPECT_FALSE(options.wide || options.show_all_procs || options.topology || options.json);
  EXPECT_EQ(options.root, "/");
}

TEST_F(LsOptions, OfficialFlagsInBothForms) {
  const Options shorts = options_of({"-wat", "-j"});
  EXPECT_TRUE(shorts.wide && shorts.show_all_procs && shorts.topology && shorts.json);
  const Options longs = options_of({"--wide", "--show-all-procs", "--topology", "--json-output"});
  EXPECT_TRUE(longs.wide && longs.show_all_procs && longs.topology && longs.json);
}

TEST_F(LsOptions, FlagBeatsEnvironmentBeatsDefault) {
  ::setenv("NEURON_LS_ROOT", "/from-environment", 1);
  EXPECT_EQ(options_of({}).root, "/from-environment");
  EXPECT_EQ(options_of({"--root", "/from-flag"}).root, "/from-flag");
}

std::string refusal_of(std::vector<const char*> arguments) {
  const auto request = parse(std::move(arguments));
  return request ? "" : request.error().message;
}

TEST_F(LsOptions, OursAreOffUntilAsked) {
  const Options options = options_of({});
  EXPECT_FALSE(options.health || options.efa || options.pods || options.watch);
  EXPECT_EQ(options.format, Format::table);
  EXPECT_TRUE(options.devices.empty() && options.kubelet_dir.empty());
  const Options all = options_of({"--health", "--efa", "--pods", "--output-format", "csv", "--kubelet-dir", "/k"});
  EXPECT_TRUE(all.health && all.efa && all.pods);
  EXPECT_EQ(all.format, Format::csv);
  EXPECT_EQ(all.kubelet_dir, "/k");
  EXPECT_THAT(refusal_of({"--output-format", "xml"}), HasSubstr("table, json, csv or svg"));
}

TEST_F(LsOptions, DevicesAreListsAndMayRepeat) {
  EXPECT_EQ(options_of({"--device", "8", "--device", "0-2,8"}).devices, (std::vector<int>{0, 1, 2, 8}));
  for (const char* bad : {"", "x", "3-1", "-1", "99999"}) {
    EXPECT_THAT(refusal_of({"--device", bad}), HasSubstr("--device")) << bad;
  }
  EXPECT_EQ(refusal_of({"--device", "3", "4"}), "unexpected argument `4'");
}

TEST_F(LsOptions, WatchMayComeWithoutASecond) {
  using std::chrono::milliseconds;
  EXPECT_EQ(options_of({"--watch"}).watch, milliseconds(2000));
  EXPECT_EQ(options_of({"--watch", "--health"}).watch, milliseconds(2000));
  EXPECT_EQ(options_of({"--watch", "5"}).watch, milliseconds(5000));
  EXPECT_EQ(options_of({"--watch=0.25"}).watch, milliseconds(250));
  EXPECT_EQ(options_of({"--watch", "1m"}).watch, milliseconds(60'000));
  for (const char* bad : {"0", "0.01", "x", "1.", "-1", "1.2345", "86401", "nan"}) {
    EXPECT_NE(refusal_of({"--watch", bad}), "") << bad;
  }
}

TEST_F(LsOptions, AVariableIsBlamedWhereNobodyTypedTheFlag) {
  ::setenv("NEURON_LS_DEVICE", "junk", 1);
  EXPECT_EQ(refusal_of({}).find("NEURON_LS_DEVICE is `junk'"), 0U);
  EXPECT_EQ(refusal_of({"--device", "x"}).find("--device is `x'"), 0U);
  EXPECT_EQ(refusal_of({"--device=x"}).find("--device is `x'"), 0U);
  ::unsetenv("NEURON_LS_DEVICE");
  ::setenv("NEURON_LS_HEALTH", "junk", 1);
  EXPECT_THAT(refusal_of({}), HasSubstr("NEURON_LS_HEALTH"));
  ::unsetenv("NEURON_LS_HEALTH");
}

TEST_F(LsOptions, TheLastRootCounts) {
  EXPECT_EQ(options_of({"--root", "/a", "--root", "/b"}).root, "/b");
}

TEST_F(LsOptions, UnknownFlagIsNamed) {
  const auto request = parse({"--badflag"});
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().message, "unknown flag `badflag'");
  EXPECT_EQ(parse({"-x"}).error().message, "unknown flag `x'");
  EXPECT_EQ(parse({"neuron0"}).error().message, "unexpected argument `neuron0'");
  EXPECT_THAT(parse({"--root"}).error().message, HasSubstr("--root"));
}

TEST_F(LsOptions, HelpAndVersionAreText) {
  const auto help = parse({"--help"});
  ASSERT_TRUE(help && std::holds_alternative<std::string>(*help));
  EXPECT_THAT(std::get<std::string>(*help), HasSubstr("--show-all-procs"));
  const auto version = parse({"--version"});
  ASSERT_TRUE(version && std::holds_alternative<std::string>(*version));
  EXPECT_THAT(std::get<std::string>(*version), StartsWith("neuron-ls "));
}

}  // namespace
}  // namespace neuron::ls
