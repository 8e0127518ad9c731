#include "tools/neuron-gather/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace neuron::gather {
namespace {

using nlohmann::json;

Manifest sample() {
  Manifest manifest;
  manifest.tool_version = "1.2.3";
  manifest.captured_at = "2026-11-21T06:40:00Z";
  manifest.instance_type = "trn2.48xlarge";
  return manifest;
}

TEST(ManifestTest, SaysWhereFromAndWhatIsMissing) {
  Capture capture;
  capture.add_unreadable("sys/b", "Input/output error");
  capture.add_unreadable("sys/a\x1b[31m", "Permission denied");
  const json manifest = json::parse(manifest_text(sample(), capture, std::nullopt));
  EXPECT_EQ(manifest["format"], "neuron-gather/1");
  EXPECT_EQ(manifest["tool_version"], "1.2.3");
  EXPECT_EQ(manifest["instance_type"], "trn2.48xlarge");
  EXPECT_TRUE(manifest["kernel"].is_null());
  EXPECT_EQ(manifest["origin"], "live");
  EXPECT_EQ(manifest["unreadable"], json::parse(R"([{"path": "sys/a\\x1b[31m", "reason": "Permission denied"},
                            {"path": "sys/b", "reason": "Input/output error"}])"));
}

TEST(ManifestTest, OfACaptureItIsTheSame) {
  Capture first;
  first.add_unreadable("sys/b", "Input/output error");
  const std::string original = manifest_text(sample(), first, std::nullopt);
  Manifest again = sample();
  again.tool_version = "9.9.9";
  again.captured_at = "2027-01-01T00:00:00Z";
  again.origin = Origin::directory;
  again.with_commands = true;  // there are none to be had
  EXPECT_EQ(manifest_text(again, {}, original), original);
  again.anonymised = true;
  again.complete = false;
  const json manifest = json::parse(manifest_text(again, {}, original));
  EXPECT_EQ(manifest["anonymised"], true);
  EXPECT_EQ(manifest["complete"], false);
}

TEST(ManifestTest, AForeignTextCountsAsNone) {
  const std::string plain = manifest_text(sample(), {}, std::nullopt);
  for (const char* text : {"", "{", "[]", "7", R"({"format": "other"})", R"({"format": 1, "unreadable": 3})"}) {
    EXPECT_EQ(manifest_text(sample(), {}, text), plain) << text;
  }
  const std::string odd = R"({"format": "neuron-gather/1", "captured_at": 5, "unreadable": [1, {"path": []}, null]})";
  EXPECT_FALSE(json::parse(manifest_text(sample(), {}, odd)).empty());
  EXPECT_EQ(manifest_text(sample(), {}, std::string(100'000, '[')), plain);
}

}  // namespace
}  // namespace neuron::gather
