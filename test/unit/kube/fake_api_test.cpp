#include "test/fakes/fake_api.h"

#include <gmock/gmock.h>

#include <thread>

namespace neuron::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kSlices = "/apis/resource.k8s.io/v1/resourceslices";

Json slice(const std::string& name, const std::string& node) {
  return {{"kind", "ResourceSlice"},
          {"apiVersion", "resource.k8s.io/v1"},
          {"metadata", {{"name", name}}},
          {"spec", {{"driver", "neuron.aws.com"}, {"nodeName", node}}}};
}

// The fake that the parts above the API server are tested against behaves as one.
class FakeApiTest : public ::testing::Test {
 protected:
  int status(const ApiCall& call) { return api_.call(call)->status; }
  Json body(const ApiCall& call) { return Json::parse(api_.call(call)->body); }
  // The types of what a watch sees until it ends.
  std::vector<std::string> watched(const std::string& query, std::size_t count) {
    std::vector<std::string> types;
    std::ignore = api_.stream({.path = kSlices, .query = "watch=true" + query},
                              [&](std::string_view line) {
                                const Json event = Json::parse(line);
                                types.push_back(event["type"].get<std::string>() + " " +
                                                event["object"].value("/metadata/name"_json_pointer, ""));
                                return types.size() < count;
                              },
                              {});
    return types;
  }

  fakes::FakeApi api_;
};

TEST_F(FakeApiTest, WritesAsAServerDoes) {
  Json made = slice("", "n1");
  made["metadata"] = {{"generateName", "n1-"}};
  const Json stored = body({.method = Method::create, .path = kSlices, .body = made.dump()});
  const std::string path = std::string(kSlices) + "/" + stored["metadata"]["name"].get<std::string>();
  EXPECT_EQ(status({.path = path}), 200);
  EXPECT_EQ(status({.method = Method::create,
                    .path = kSlices,
                    .body =
                        [&] {
                          Json again = stored;
                          again["metadata"].erase("resourceVersion");
                          return again.dump();
                        }()}),
            409);
  EXPECT_EQ(body({.method = Method::replace, .path = path, .body = stored.dump()})["metadata"]["resourceVersion"],
            stored["metadata"]["resourceVersion"]);  // nothing has changed
  Json changed = stored;
  changed["spec"]["pool"]["generation"] = 2;
  const Json newer = body({.method = Method::replace, .path = path, .body = changed.dump()});
  EXPECT_EQ(newer["metadata"]["generation"], 2);
  EXPECT_EQ(newer["metadata"]["uid"], stored["metadata"]["uid"]);
  EXPECT_EQ(status({.method = Method::replace, .path = path, .body = changed.dump()}), 409);  // of an old version
  EXPECT_EQ(status({.method = Method::remove, .path = path}), 200);
  EXPECT_EQ(status({.method = Method::remove, .path = path}), 404);
  EXPECT_EQ(api_.writes().size(), 7U);
}

TEST_F(FakeApiTest, ListsBySelectorAndInPages) {
  for (const char* name : {"a", "b", "c"}) api_.put(std::string(kSlices) + "/" + name, slice(name, "n1"));
  api_.put(std::string(kSlices) + "/d", slice("d", "n2"));
  const std::string mine = "fieldSelector=spec.driver%3Dneuron.aws.com%2Cspec.nodeName%3Dn1";
  EXPECT_EQ(body({.path = kSlices, .query = mine})["items"].size(), 3U);
  const Json page = body({.path = kSlices, .query = mine + "&limit=2"});
  EXPECT_EQ(page["items"].size(), 2U);
  const std::string next = page["metadata"]["continue"];
  EXPECT_EQ(body({.path = kSlices, .query = mine + "&limit=2&continue=" + next})["items"].size(), 1U);
  api_.drop(std::string(kSlices) + "/d");
  api_.expire();
  EXPECT_EQ(status({.path = kSlices, .query = mine + "&limit=2&continue=" + next}), 410);
  EXPECT_EQ(status({.path = kSlices, .query = "fieldSelector=spec.pool%3Dx"}), 400);
}

TEST_F(FakeApiTest, WatchesSeeWhatHappens) {
  api_.put(std::string(kSlices) + "/a", slice("a", "n1"));
  const std::string version = body({.path = kSlices})["metadata"]["resourceVersion"];
  api_.put(std::string(kSlices) + "/b", slice("b", "n2"));
  api_.put(std::string(kSlices) + "/a", slice("a", "n1"));
  api_.send_bookmark();
  api_.drop(std::string(kSlices) + "/a");
  EXPECT_THAT(watched("&fieldSelector=spec.nodeName%3Dn1&resourceVersion=" + version, 3),
              ElementsAre("MODIFIED a", "BOOKMARK ", "DELETED a"));
  EXPECT_THAT(watched("", 1), ElementsAre("ADDED b"));
  api_.expire();
  EXPECT_THAT(watched("&resourceVersion=" + version, 1), ElementsAre("ERROR "));
}

TEST_F(FakeApiTest, AWatchEndsWhenStoppedOrEnded) {
  for (const bool is_stopped : {true, false}) {
    std::jthread watcher([this](const std::stop_token& stop) {
      std::ignore = api_.stream(
          {.path = kSlices, .query = "watch=true"}, [](auto) { return true; }, stop);
    });
    EXPECT_TRUE(api_.wait([this] { return api_.open_watches() == 1; }));
    if (is_stopped) watcher.request_stop();
    if (!is_stopped) api_.end_watches();
    EXPECT_TRUE(api_.wait([this] { return api_.open_watches() == 0; }));
  }
}

TEST_F(FakeApiTest, FailsAsTold) {
  api_.fail_next(1, 503);
  api_.fail_next(1, make_error(ErrorCode::unavailable, "refused"));
  EXPECT_EQ(status({.path = kSlices}), 503);
  EXPECT_FALSE(api_.call({.path = kSlices}));
  EXPECT_EQ(status({.path = kSlices}), 200);
  api_.fail_next({.method = Method::create, .error = make_error(ErrorCode::deadline_exceeded, "lost"), .lost = true});
  EXPECT_FALSE(api_.call({.method = Method::create, .path = kSlices, .body = slice("a", "n1").dump()}));
  EXPECT_EQ(api_.all(kSlices).size(), 1U);
  api_.fail_next({.hangs = true});
  std::jthread caller([this] { EXPECT_FALSE(api_.call({.path = kSlices})); });
  EXPECT_TRUE(api_.wait([this] { return api_.calls().size() == 5; }));
  api_.let_go();
}

TEST_F(FakeApiTest, GatesThatAreOffStripFields) {
  api_.set_gates({.partitionable_devices = false, .device_taints = false});
  Json object = slice("a", "n1");
  object["spec"]["sharedCounters"] = Json::array({1});
  object["spec"]["devices"] = {{{"name", "d"}, {"taints", {1}}, {"consumesCounters", {1}}},
                               {{"name", "e"}, {"basic", {{"taints", {1}}, {"consumesCounters", {1}}}}}};
  const Json stored = body({.method = Method::create, .path = kSlices, .body = object.dump()});
  EXPECT_EQ(stored["spec"]["devices"], Json::parse(R"([{"name":"d"},{"name":"e","basic":{}}])"));
  EXPECT_FALSE(stored["spec"].contains("sharedCounters"));
}

TEST_F(FakeApiTest, StatusIsApart) {
  const std::string path = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c";
  api_.put(path, {{"spec", {{"x", 1}}}, {"status", {{"allocation", 1}}}});
  Json claim = api_.at(path);
  claim["spec"]["x"] = 2;
  claim["status"] = {{"devices", 1}};
  EXPECT_EQ(body({.method = Method::replace, .path = path + "/status", .body = claim.dump()})["spec"]["x"], 1);
  EXPECT_EQ(api_.at(path)["status"], Json({{"devices", 1}}));
  EXPECT_EQ(status({.method = Method::merge_patch, .path = path, .body = R"({"spec":{"x":3}})"}), 200);
  api_.set_served({"v1", "v1beta1"});
  EXPECT_EQ(api_.at("/apis/resource.k8s.io/v1beta1/namespaces/ns/resourceclaims/c")["spec"]["x"], 3);
  api_.set_served({"v1"});
  EXPECT_EQ(status({.path = "/apis/resource.k8s.io/v1beta1/namespaces/ns/resourceclaims/c"}), 404);
  EXPECT_EQ(status({.method = Method::apply, .path = path, .body = "{}"}), 422);  // without a field manager
}

// docs: Kubernetes API, "Status"; a version that is not served has a 404 without the name of an object.
TEST(BodyOf, AMissingObjectAndAPathThatIsNotServedDiffer) {
  const auto code = [](const std::string& body) { return body_of({404, body}, {.path = kSlices}).error().code; };
  EXPECT_EQ(code(R"({"kind":"Status","reason":"NotFound","details":{"name":"c","kind":"resourceclaims"},"code":404})"),
            ErrorCode::not_found);
  for (const char* other : {R"({"kind":"Status","reason":"NotFound","details":{},"code":404})",
                            R"({"kind":"Status","reason":"NotFound","code":404})", "404 page not found\n", ""}) {
    EXPECT_EQ(code(other), ErrorCode::unavailable) << other;
  }
}

TEST(BodyOf, ErrorsByStatus) {
  const ApiCall call{.method = Method::create, .path = kSlices};
  EXPECT_EQ(*body_of({201, "{}"}, call), "{}");
  for (const auto& [status, code] : std::map<int, ErrorCode>{{401, ErrorCode::permission_denied},
                                                             {403, ErrorCode::permission_denied},
                                                             {404, ErrorCode::unavailable},
                                                             {410, ErrorCode::not_found},
                                                             {409, ErrorCode::failed_precondition},
                                                             {302, ErrorCode::failed_precondition},
                                                             {400, ErrorCode::invalid_argument},
                                                             {429, ErrorCode::unavailable},
                                                             {503, ErrorCode::unavailable},
                                                             {0, ErrorCode::data_corrupt}}) {
    const auto body = body_of({status, R"({"message":"why\n"})"}, call);
    ASSERT_FALSE(body);
    EXPECT_EQ(body.error().code, code) << status;
    EXPECT_THAT(body.error().message,
                HasSubstr("POST " + std::string(kSlices) + " answers " + std::to_string(status) + ": why\\x0a"));
  }
}

}  // namespace
}  // namespace neuron::kube
