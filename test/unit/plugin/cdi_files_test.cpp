#include "plugin/device/cdi_files.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "test/unit/grant/nodes.h"

namespace neuron::plugin {
namespace {

using nlohmann::json;

grant::GrantOptions with_names() {
  return {"/sim", grant::CoreNumbering::container, true};
}

TEST(CdiFiles, FilesAppearWholeAndGoWithTheHardware) {
  std::string parent = testing::TempDir() + "cdiXXXXXX";
  ASSERT_NE(mkdtemp(parent.data()), nullptr);
  const std::string directory = parent + "/cdi";
  ASSERT_TRUE(write_cdi_specs(*node_of("trn1.32xlarge"), with_names(), directory));
  EXPECT_TRUE(json::accept(std::ifstream(directory + "/aws.amazon.com-neuron.json")));
  EXPECT_TRUE(std::filesystem::exists(directory + "/vpc.amazonaws.com-efa.json"));
  ASSERT_TRUE(write_cdi_specs(*node_of("inf2.48xlarge"), with_names(), directory));
  EXPECT_FALSE(std::filesystem::exists(directory + "/vpc.amazonaws.com-efa.json"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);
  EXPECT_FALSE(write_cdi_specs(*node_of("inf2.48xlarge"), with_names(), "/nonexistent/cdi"));
}

}  // namespace
}  // namespace neuron::plugin
