#include <poll.h>

#include "plugin/dra/claim/claim_grant.h"
#include "plugin/dra/claim/claim_upkeep.h"
#include "test/unit/dra/claims_fixture.h"

namespace neuron::plugin::dra {
namespace {

// What an older version gave admin access too much is mended for the next container.
TEST(NewestCdiText, PermissionsAreThoseOfToday) {
  const auto node = node_of("trn1.32xlarge");
  const grant::GrantOptions options;
  const std::string efa = node->efa(0).name;
  json spec = {{"cdiVersion", "0.5.0"}, {"kind", "k8s.d/claim"}, {"devices", json::array()}};
  const auto add = [&](const std::string& name, const std::string& path, const std::string& permissions) {
    spec["devices"].push_back(
        {{"name", name},
         {"containerEdits", {{"deviceNodes", {{{"path", path}, {"hostPath", path}, {"permissions", permissions}}}}}}});
  };
  add("u-admin-neuron-device-2", "/dev/neuron2", "r");
  add("u-admin-neuron-device-77", "/dev/neuron77", "r");  // is away
  add("u-admin-efa-" + efa, "/dev/infiniband/" + *node->efa(0).uverbs, "r");
  add("u-neuron-device-3", "/dev/neuron3", "rw");
  const json newest = json::parse(newest_cdi_text(spec.dump(), "u", {*node, options}));
  ASSERT_EQ(newest["devices"].size(), 3U);
  EXPECT_EQ(newest["devices"][0]["containerEdits"]["deviceNodes"][0]["permissions"], "w");
  EXPECT_EQ(newest["devices"][1]["containerEdits"]["deviceNodes"][0]["permissions"], "w");
  EXPECT_EQ(newest["devices"][2], spec["devices"][3]);
  for (const char* text : {"", "{", "[]", R"({"devices":7})", R"({"devices":[7,{"name":1}]})"}) {
    EXPECT_EQ(newest_cdi_text(text, "u", {*node, options}), text);
  }
}

// A container that is started again reads the node's file, and its cores are numbered by what that said earlier.
TEST(NewestCdiText, RequestsGetTheLncOfTheirNumbers) {
  const grant::GrantOptions options;
  const std::shared_ptr<const grant::NodeUnits> node = node_of("trn2.48xlarge");
  const auto file_says = [&](int lnc) {
    auto scanned = std::make_shared<model::Snapshot>(node->snapshot());
    scanned->host.lnc->value = lnc;
    auto numbered = std::make_shared<model::Snapshot>(node->snapshot());
    numbered->host.lnc->value = 2;
    return grant::NodeUnits(numbered, grant::NodeUnits(scanned));
  };
  const grant::NodeUnits same = file_says(2), other = file_says(1);
  json spec = {{"cdiVersion", "0.5.0"}, {"kind", "k8s.d/claim"}, {"devices", json::array()}};
  const auto add = [&](const std::string& request, const json& env) {
    spec["devices"].push_back({{"name", "u-request-" + request}, {"containerEdits", {{"env", env}}}});
  };
  add("chips", {"NEURON_RT_VISIBLE_CORES=0-3"});
  add("set", {"NEURON_LOGICAL_NC_CONFIG=1", "NEURON_RT_VISIBLE_CORES=0-7"});
  add("none", {"OTHER=1"});
  const std::string text = spec.dump();
  EXPECT_EQ(newest_cdi_text(text, "u", {same, options}, 2), text);
  EXPECT_EQ(newest_cdi_text(text, "u", {other, options}), text) << "of an older version";
  spec["devices"][0]["containerEdits"]["env"] = {"NEURON_LOGICAL_NC_CONFIG=2", "NEURON_RT_VISIBLE_CORES=0-3"};
  EXPECT_EQ(json::parse(newest_cdi_text(text, "u", {other, options}, 2)), spec);
}

TEST(CdiWatch, SaysWhenFilesOrTheDirectoryHaveGone) {
  using News = CdiWatch::News;
  const Scratch scratch;
  const std::string directory = scratch.path() + "/cdi";
  auto watch = CdiWatch::open(directory);
  ASSERT_TRUE(watch);
  EXPECT_EQ(watch->take(), News::nothing);
  const auto is_readable = [&] {
    pollfd one{watch->fd(), POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
  };
  write_text(directory + "/a.json.new", "{}");
  std::filesystem::rename(directory + "/a.json.new", directory + "/a.json");
  EXPECT_EQ(watch->take(), News::nothing) << "written";
  std::filesystem::remove(directory + "/a.json");
  EXPECT_TRUE(is_readable());
  EXPECT_EQ(watch->take(), News::files_gone);
  EXPECT_EQ(watch->take(), News::nothing);
  std::filesystem::remove_all(directory);
  EXPECT_TRUE(is_readable());
  EXPECT_EQ(watch->take(), News::ended);
  watch = CdiWatch::open(directory);
  ASSERT_TRUE(watch) << "the directory is made";
  write_text(directory + "/b.json", "{}");
  std::filesystem::remove(directory + "/b.json");
  EXPECT_EQ(watch->take(), News::files_gone);
}

}  // namespace
}  // namespace neuron::plugin::dra
