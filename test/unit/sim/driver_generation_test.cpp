#include "tools/neuron-sim/host_plan.h"

#include <gtest/gtest.h>

namespace neuron::sim {
namespace {

TEST(DriverGeneration, ShapeFollowsTheVersion) {
  struct Row {
    const char* version;
    bool known, readable, raw_power, corrected;
    HealthFiles health;
  };
  const Row rows[] = {
      {"2.24.7.0", true, false, false, false, HealthFiles::none},
      {"2.26.5.0", true, false, false, false, HealthFiles::none},
      {"2.27.4.0", true, false, false, false, HealthFiles::none},
      {"2.28.0.0", true, true, false, false, HealthFiles::error_counts},
      {"2.29.0.0", true, true, true, false, HealthFiles::error_counts},
      {"2.30.2.0", true, true, true, true, HealthFiles::components},
      {"2.31.7.0", false, true, true, true, HealthFiles::components},
  };
  for (const auto& row : rows) {
    const auto generation = generation_of(row.version);
    ASSERT_TRUE(generation.has_value()) << row.version;
    EXPECT_EQ(generation->known_layout(), row.known) << row.version;
    EXPECT_EQ(generation->readable_counts(), row.readable) << row.version;
    EXPECT_EQ(generation->raw_power(), row.raw_power) << row.version;
    EXPECT_EQ(generation->corrected_ecc(), row.corrected) << row.version;
    EXPECT_EQ(generation->health(), row.health) << row.version;
  }
}

TEST(DriverGeneration, WhatOlderDriversDoNotHave) {
  EXPECT_FALSE(generation_of("2.22.2.0")->repairable_ecc());
  EXPECT_FALSE(generation_of("2.22.2.0")->tensor_counters());
  EXPECT_FALSE(generation_of("2.22.2.0")->class_files_by_size());
  EXPECT_TRUE(generation_of("2.23.9.0")->class_files_by_size());
  EXPECT_FALSE(generation_of("2.24.7.0")->valid_without_power());
  EXPECT_TRUE(generation_of("2.25.4.0")->valid_without_power());
}

TEST(DriverGeneration, BottlerocketsVersionIsTaken) {
  EXPECT_EQ(generation_of("2.x.8072.0")->minor, 26);
}

TEST(DriverGeneration, OtherTextIsRefused) {
  for (const char* text : {"", "2", "2.30", "3.1.0", "2..1", "two.30.2", "2.20.74.0", "2.-1.0", "2.y.1.0"}) {
    const auto generation = generation_of(text);
    ASSERT_FALSE(generation.has_value()) << text;
    EXPECT_EQ(generation.error().code, ErrorCode::invalid_argument) << text;
  }
}

TEST(DriverGeneration, OldChipsNeedOldDriversAndNewOnesNew) {
  const auto old_driver = *generation_of("2.24.7.0");
  const auto new_driver = *generation_of("2.26.5.0");
  EXPECT_TRUE(check_drives(old_driver, model::Family::inferentia));
  EXPECT_FALSE(check_drives(new_driver, model::Family::inferentia));
  EXPECT_FALSE(check_drives(old_driver, model::Family::trainium3));
  EXPECT_TRUE(check_drives(new_driver, model::Family::trainium3));
}

TEST(DriverGeneration, PlatformDependsOnNameAndVersion) {
  const auto before = *generation_of("2.26.5.0");
  const auto now = *generation_of("2.30.2.0");
  EXPECT_EQ(platform_of("trn2.48xlarge", now), Platform::standard);
  EXPECT_EQ(platform_of("trn2u.48xlarge", before), Platform::ultraserver);
  EXPECT_EQ(platform_of("trn2es.48xlarge", before), Platform::pds);
  EXPECT_EQ(platform_of("trn2es.48xlarge", *generation_of("2.24.7.0")), Platform::standard);
  EXPECT_EQ(platform_of("trn3.48xlarge", before), Platform::standard);
  EXPECT_EQ(platform_of("trn3.48xlarge", now), Platform::pds);
  EXPECT_EQ(platform_of("trn2en.24xlarge", now), Platform::max);
}

}  // namespace
}  // namespace neuron::sim
