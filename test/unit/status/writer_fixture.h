#pragma once

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "agent/status/status_writer.h"
#include "test/fakes/fake_api.h"
#include "test/fakes/fake_clock.h"
#include "test/unit/status/nodes.h"

namespace neuron::status {

// One turn at a time against a server in memory; both clocks stand still but for after().
class WriterFixture : public testing::Test {
 protected:
  using Json = nlohmann::json;
  static constexpr const char* kNode = "/api/v1/nodes/n1";
  static constexpr const char* kStatus = "/api/v1/nodes/n1/status";
  static constexpr const char* kEvents = "/api/v1/namespaces/default/events";

  WriterFixture() { put_node("u"); }

  void put_node(const std::string& uid) {
    api_.drop(kNode);
    api_.put(kNode, {{"metadata", {{"uid", uid}, {"labels", {{"a", "b"}}}}},
                     {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }
  StatusWriter::Settings settings(bool ready = true) {
    return {.node = "n1", .report = {.hardware_ready = ready}, .wall = [this] { return wall_; }, .seed = 1};
  }
  // As a restart of the agent.
  void start_anew() { writer_ = std::make_unique<StatusWriter>(api_, settings(), clock_); }
  // What is due now, until nothing is.
  std::chrono::milliseconds settle() {
    for (int turns = 0; turns < 20; ++turns) {
      const auto pause = writer_->turn();
      if (pause > std::chrono::milliseconds(0)) return pause;
    }
    ADD_FAILURE() << "never at rest";
    return {};
  }
  // Lets time pass as run() would: turn by turn.
  void after(std::chrono::milliseconds time) {
    auto left = time;
    for (int turns = 0; left > std::chrono::milliseconds(0); ++turns) {
      ASSERT_LT(turns, 10'000);
      const auto step = std::min(std::max(settle(), std::chrono::milliseconds(1)), left);
      clock_.advance(step);
      wall_ += step;
      left -= step;
    }
    settle();
  }
  void say(const model::HostScan& host) {
    writer_->set(snapshot_of(host));
    settle();
  }
  void begin(const model::HostScan& host = well_host()) {
    say(host);
    after(StatusWriter::kSpread);
  }
  // {} where there is none.
  [[nodiscard]] Json condition(const std::string& type) const {
    const Json node = api_.at(kNode);
    for (const Json& one : node["status"]["conditions"]) {
      if (one["type"] == type) return one;
    }
    return Json::object();
  }
  [[nodiscard]] std::string status(const std::string& type) const { return condition(type).value("status", ""); }
  [[nodiscard]] std::string label(const std::string& key) const {
    return api_.at(kNode)["metadata"]["labels"].value(key, "");
  }
  [[nodiscard]] std::vector<std::string> reasons_told() const {
    std::vector<std::string> reasons;
    for (const Json& event : api_.all(kEvents)) reasons.push_back(event["reason"].get<std::string>());
    return reasons;
  }

  fakes::FakeApi api_;
  fakes::FakeClock clock_;
  WallTime wall_{std::chrono::hours(500'000)};  // 2027-01-15T08:00:00Z
  std::unique_ptr<StatusWriter> writer_ = std::make_unique<StatusWriter>(api_, settings(), clock_);
};

}  // namespace neuron::status
