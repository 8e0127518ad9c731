#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/dra/slices/publisher.h"
#include "test/fakes/fake_api.h"
#include "test/fakes/fake_clock.h"
#include "test/unit/dra/limits.h"
#include "test/unit/dra/pools.h"

namespace neuron::plugin::dra {

// As a ValidatingAdmissionPolicy denies (kube-apiserver 1.36.3): reason "Invalid" (422), its default, or "Forbidden"
// (403), with a cause that names no field.
inline kube::ApiReply denied_by_policy(const std::string& words, const std::string& reason = "Invalid") {
  const std::string message =
      "ValidatingAdmissionPolicy 'neuron-agent-dra' with binding 'neuron-agent-dra' denied request: " + words;
  nlohmann::json status = {{"kind", "Status"},
                           {"message", "resourceslices.resource.k8s.io \"x\" is forbidden: " + message},
                           {"reason", reason}};
  status["details"]["causes"].push_back({{"message", message}});
  return {reason == "Forbidden" ? 403 : 422, status.dump()};
}

// As the server answers for a validating webhook that gives no code.
inline kube::ApiReply denied_by_webhook(const std::string& words) {
  const nlohmann::json status = {
      {"kind", "Status"}, {"message", "admission webhook \"slices.example.com\" " + words}, {"reason", "BadRequest"}};
  return {400, status.dump()};
}

// The server behind an admission policy or webhook. Set it while no call is under way.
class AdmissionApi final : public kube::Api {
 public:
  using Rule = std::function<std::optional<kube::ApiReply>(bool is_dry_run)>;  // nullopt: it is admitted

  explicit AdmissionApi(kube::Api& api) : api_(api) {}
  void set(Rule rule) { rule_ = std::move(rule); }

  [[nodiscard]] Result<kube::ApiReply> call(const kube::ApiCall& call) override {
    const bool is_write = call.method == kube::Method::create || call.method == kube::Method::replace;
    if (is_write && rule_) {
      if (auto denied = rule_(call.query.find("dryRun") != std::string::npos)) return *std::move(denied);
    }
    return api_.call(call);
  }
  [[nodiscard]] Result<kube::ApiReply> stream(const kube::ApiCall& call, const OnLine& on_line,
                                              const std::stop_token& stop) override {
    return api_.stream(call, on_line, stop);
  }

 private:
  kube::Api& api_;
  Rule rule_;
};

// One turn at a time, and the watch's words as the server would send them.
class PublisherFixture : public testing::Test {
 protected:
  PublisherFixture() { put_node("v1.36.3"); }

  void put_node(const std::string& kubelet, const std::string& uid = "uid-of-n1") {
    api_.drop(std::string("/api/v1/nodes/n1"));
    api_.put(std::string("/api/v1/nodes/n1"),
             {{"metadata", {{"uid", uid}}}, {"status", {{"nodeInfo", {{"kubeletVersion", kubelet}}}}}});
  }
  void set_server(const std::string& minor, const std::string& git, bool gates) {
    api_.set_version(minor, git);
    api_.set_gates({gates, gates});
  }
  // Does what is due now, and tells the watch's news, until there is nothing more.
  std::chrono::milliseconds settle() {
    for (int turns = 0; turns < 50; ++turns) {
      const auto pause = publisher_.turn();
      tell_news();
      if (pause > std::chrono::milliseconds(0)) return pause;
    }
    ADD_FAILURE() << "never at rest";
    return std::chrono::milliseconds(0);
  }
  void settle_after(std::chrono::milliseconds time) {
    clock_.advance(time);
    settle();
  }
  // As the watch does, without its thread: reports what differs from its last report.
  void tell_news() {
    std::map<std::string, std::string> now;
    for (const nlohmann::json& object : api_.all(kSlicesPath)) {
      if (object["spec"]["driver"] != "neuron.aws.com" || object["spec"]["nodeName"] != "n1") continue;  // the selector
      const nlohmann::json metadata = object["metadata"];
      const std::string name = metadata["name"], version = metadata["resourceVersion"];
      now[name] = version;
      if (told_[name] != version) publisher_.on_upsert({"", name, metadata["uid"], version, object});
    }
    for (const auto& [name, version] : told_) {
      if (!now.contains(name)) publisher_.on_remove({"", name, "", version, nlohmann::json::object()});
    }
    told_ = std::move(now);
  }
  void publish(const Pool& pool) {
    publisher_.set_pool(pool);
    settle_after(std::chrono::seconds(1));
  }
  // Those of this driver and node.
  [[nodiscard]] std::vector<Slice> stored() const {
    std::vector<Slice> slices;
    for (const nlohmann::json& object : api_.all(kSlicesPath)) {
      Slice slice = parse_slice(object.dump()).value();
      const bool is_its = spec_text(slice, "driver") == "neuron.aws.com" && spec_text(slice, "nodeName") == "n1";
      if (is_its) slices.push_back(std::move(slice));
    }
    return slices;
  }
  // An object of another driver on another node, as that driver's token may make it.
  void put_foreign(const std::string& name) {
    api_.put(std::string(kSlicesPath) + "/" + name,
             {{"spec",
               {{"driver", "gpu.example.com"},
                {"nodeName", "n2"},
                {"pool", {{"name", "n2"}, {"generation", 1}, {"resourceSliceCount", 1}}},
                {"devices", {{{"name", "gpu-0"}}}}}}});
  }
  // A scheduler would take the pool: complete, of one generation, within the limits, and as it is wanted.
  void expect_published(const Pool& pool, const LayoutOptions& options = {}) {
    const auto slices = stored();
    const auto wanted = lay_out(pool, options).slices;
    std::vector<Slice> whole = whole_slices(wanted, {"neuron.aws.com", "n1", {"n1", "uid-of-n1"}});
    ASSERT_EQ(slices.size(), wanted.size());
    for (std::size_t i = 0; i < slices.size(); ++i) {
      whole[i].json["spec"]["pool"]["generation"] = generation_of(slices.front());
      EXPECT_TRUE(is_same(slices[i], whole[i])) << slices[i].name << "\n" << slices[i].json.dump(2);
    }
    expect_within_limits(wanted, options.shape);
    EXPECT_TRUE(publisher_.state().published) << publisher_.state().error;
    EXPECT_EQ(publisher_.state().error, "");
    EXPECT_EQ(publisher_.state().slices, wanted.size());
  }
  [[nodiscard]] std::size_t writes() const { return api_.writes().size(); }

  fakes::FakeApi api_;
  fakes::FakeClock clock_;
  AdmissionApi admission_{api_};
  SlicePublisher publisher_{admission_, {"neuron.aws.com", "n1", "n1"}, clock_};
  std::map<std::string, std::string> told_;
};

}  // namespace neuron::plugin::dra
