// The sessions of docs/kubectl-neuron.md, as they come out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "test/fakes/paths.h"
#include "test/unit/kubectl_neuron/simulated_fleet.h"
#include "test/unit/render/golden.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/dump.h"
#include "tools/kubectl-neuron/map.h"
#include "tools/kubectl-neuron/plan.h"
#include "tools/kubectl-neuron/top_screen.h"
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

std::string why_of(const Fleet& fleet, const std::string& pod_namespace, const std::string& pod) {
  const Pod* found = find_pod(fleet, pod_namespace, pod);
  EXPECT_NE(found, nullptr) << pod;
  return found == nullptr ? "" : why_text(why(fleet, *found));
}

// What a cluster of three kinds of nodes answered: made by TestKubectlNeuronSession (test/cluster).
Documents of_the_cluster() {
  auto documents = read_dump(fakes::source_dir() + "/test/fixtures/kubectl-neuron/three-kinds.tar.gz");
  EXPECT_TRUE(documents) << documents.error().message;
  return documents ? *std::move(documents) : Documents();
}

TEST(Session, NodesAndPods) {
  const Documents documents = of_the_cluster();
  const Fleet fleet = make_fleet(documents);
  expect_in_page(nodes_listing(fleet, Output::table));
  expect_in_page(pods_listing(fleet, usages_of(documents, 0), Output::table, ""));
}

TEST(Session, Why) {
  expect_in_page(why_of(make_fleet(of_the_cluster()), "default", "waiting"));
  expect_in_page(why_of(make_fleet(of_the_cluster()), "default", "train-0"));
}

TEST(Session, Plan) {
  const Fleet fleet = make_fleet(of_the_cluster());
  const auto manifest = parse_manifest(
      R"({"kind":"Deployment","metadata":{"name":"serve"},"spec":{"replicas":4,"template":{"spec":{"containers":[
          {"name":"main","resources":{"limits":{"aws.amazon.com/neuron":"4"}}}]}}}})",
      "default", fleet.classes);
  ASSERT_TRUE(manifest);
  expect_in_page(plan_text(plan(fleet, *manifest, 0)));
}

TEST(Session, Top) {
  const Documents documents = of_the_cluster();
  const Top top = make_top(make_fleet(documents), usages_of(documents, 0));
  TopState state;
  state.by = TopBy::node;
  expect_in_page(print_top(top, state, render::Charset::utf8, 140).to_text());
}

TEST(Session, Map) {
  const Fleet fleet = make_fleet(of_the_cluster());
  neuron::test::expect_golden_file("docs/pictures/kubectl-neuron-map.svg", draw_map(fleet, MapFormat::svg));
}

}  // namespace
}  // namespace neuron::fleet::test
