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
