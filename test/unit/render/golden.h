#pragma once

#include <string>

namespace neuron::test {

// Compares `actual` with golden/<name> next to this file, byte for byte; UPDATE_GOLDEN=1 in the environment writes the
// file instead. A missing file is a failure.
void expect_golden(const std::string& name, const std::string& actual);

// The same for a file anywhere in the tree, "test/unit/top/golden/help.txt".
void expect_golden_file(const std::string& file_of_tree, const std::string& actual);

}  // namespace neuron::test
