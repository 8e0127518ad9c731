#include "plugin/device/cdi.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "test/unit/plugin/views.h"

namespace neuron::plugin {
namespace {

using nlohmann::json;

ResponseOptions with_names() {
  return {"/sim", CoreNumbering::container, true};
}

TEST(Cdi, EveryUnitIsADeviceWithTheNodesThatAllocateGives) {
  const NodeViewPtr view = view_of("trn1.32xlarge");
  const json neuron = json::parse(cdi_spec(*view, model::Resource::neuron, with_names()));
  EXPECT_EQ(neuron["cdiVersion"], "0.5.0");
  EXPECT_EQ(neuron["kind"], "aws.amazon.com/neuron");
  ASSERT_EQ(neuron["devices"].size(), 16U);
  EXPECT_EQ(neuron["devices"][3]["name"], "3");
  const json node = neuron["devices"][3]["containerEdits"]["deviceNodes"][0];
  EXPECT_EQ(node["path"], "/dev/neuron3");
  EXPECT_EQ(node["hostPath"], "/sim/dev/neuron3");
  EXPECT_EQ(node["permissions"], "rw");
  EXPECT_EQ(json::parse(cdi_spec(*view, model::Resource::efa, with_names()))["devices"].size(), 8U);
}

TEST(Cdi, NamesInAnswersAreNamesInTheSpec) {
  const NodeViewPtr view = view_of("trn1.32xlarge");
  const ContainerAnswer answer = answer_for_silicon(*view, {2}, {4, 5}, with_names());
  const json spec = json::parse(cdi_spec(*view, model::Resource::neuron, with_names()));
  EXPECT_EQ(answer.cdi_names.at(0),
            spec["kind"].get<std::string>() + "=" + spec["devices"][2]["name"].get<std::string>());
}

TEST(Cdi, FilesAppearWholeAndGoWithTheHardware) {
  std::string parent = testing::TempDir() + "cdiXXXXXX";
  ASSERT_NE(mkdtemp(parent.data()), nullptr);
  const std::string directory = parent + "/cdi";
  ASSERT_TRUE(write_cdi_specs(*view_of("trn1.32xlarge"), with_names(), directory));
  EXPECT_TRUE(json::accept(std::ifstream(directory + "/aws.amazon.com-neuron.json")));
  EXPECT_TRUE(std::filesystem::exists(directory + "/vpc.amazonaws.com-efa.json"));
  ASSERT_TRUE(write_cdi_specs(*view_of("inf2.48xlarge"), with_names(), directory));
  EXPECT_FALSE(std::filesystem::exists(directory + "/vpc.amazonaws.com-efa.json"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);
  EXPECT_FALSE(write_cdi_specs(*view_of("inf2.48xlarge"), with_names(), "/nonexistent/cdi"));
}

}  // namespace
}  // namespace neuron::plugin
