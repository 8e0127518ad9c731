// The sessions of docs/kubectl-neuron.md, as they come out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "test/fakes/paths.h"
#include "test/unit/kubectl_neuron/simulated_fleet.h"
#include "tools/kubectl-neuron/plan.h"
#include "tools/kubectl-neuron/why.h"

namespace neuron::fleet::test {
namespace {

// The text as a block of the page: four spaces before each line that is not empty.
std::string block_of(const std::string& text) {
  std::istringstream lines(text);
  std::string block;
  for (std::string line; std::getline(lines, line);) block += line.empty() ? "\n" : "    " + line + "\n";
  return block;
}

void expect_in_page(const std::string& text) {
  std::ifstream file(fakes::source_dir() + "/docs/kubectl-neuron.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(page.find(block_of(text)), std::string::npos) << block_of(text);
}

std::string why_of(const Fleet& fleet, const std::string& pod) {
  const Pod* found = find_pod(fleet, "team", pod);
  EXPECT_NE(found, nullptr) << pod;
  return found == nullptr ? "" : why_text(why(fleet, *found));
}

TEST(Session, Why) {
  const Fleet fleet = make_fleet(neuron::test::three_nodes());
  expect_in_page(why_of(fleet, "waiting"));
  expect_in_page(why_of(fleet, "train-1"));
}

TEST(Session, Plan) {
  const Fleet fleet = make_fleet(neuron::test::three_nodes());
  const auto manifest = parse_manifest(
      R"({"kind":"Deployment","metadata":{"name":"serve"},"spec":{"replicas":6,"template":{"spec":{"containers":[
          {"name":"main","resources":{"limits":{"aws.amazon.com/neuron":"4"}}}]}}}})",
      "team", fleet.classes);
  ASSERT_TRUE(manifest);
  expect_in_page(plan_text(plan(fleet, *manifest, 0)));
}

}  // namespace
}  // namespace neuron::fleet::test
