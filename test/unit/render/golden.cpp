#include "test/unit/render/golden.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "test/fakes/paths.h"

namespace neuron::test {

void expect_golden(const std::string& name, const std::string& actual) {
  expect_golden_file("test/unit/render/golden/" + name, actual);
}

void expect_golden_file(const std::string& file_of_tree, const std::string& actual) {
  const std::string path = fakes::source_dir() + "/" + file_of_tree;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << actual;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file.is_open()) << path << " is missing; UPDATE_GOLDEN=1 writes it";
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(expected.str(), actual) << path;
}

}  // namespace neuron::test
