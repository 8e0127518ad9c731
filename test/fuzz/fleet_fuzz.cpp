// What kubectl-neuron reads of a cluster: lists of every kind and agents' answers, as they come and as a dump keeps
// them. The first byte is the kind, 7 the answer of an agent.

#include <cstdlib>
#include <string>
#include <string_view>

#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/documents.h"
#include "tools/kubectl-neuron/dump.h"
#include "tools/kubectl-neuron/map.h"
#include "tools/kubectl-neuron/top_screen.h"

namespace {

using neuron::fleet::Documents;
using neuron::fleet::Kind;
using neuron::fleet::Output;

void require(bool holds) {
  if (!holds) std::abort();
}

// A list may name the nodes, pods and claims of others.
Documents around() {
  Documents documents;
  documents.read_at = "2026-11-26T12:00:00Z";
  documents.list(Kind::nodes) = {R"({"items":[{"metadata":{"name":"n"}}]})"};
  documents.list(Kind::pods) = {R"({"items":[{"metadata":{"namespace":"d","name":"p"},"spec":{"nodeName":"n"}}]})"};
  return documents;
}

void show(const Documents& documents) {
  const neuron::fleet::Fleet fleet = neuron::fleet::make_fleet(documents);
  for (const Output output : {Output::table, Output::wide, Output::csv, Output::json}) {
    const std::string text = nodes_listing(fleet, output) + pods_listing(fleet, {}, output, "");
    require(text.find('\x1b') == std::string::npos);
  }
  const std::string page = draw_map(fleet, neuron::fleet::MapFormat::html);
  require(page.find('\x1b') == std::string::npos && page.find("<script") == std::string::npos);
  const auto top = neuron::fleet::make_top(fleet, {});
  const std::string screen = print_top(top, {}, neuron::render::Charset::utf8, 120).to_text();
  require(screen.find('\x1b') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);  // NOLINT
  Documents documents = around();
  const std::size_t kind = data[0] % (neuron::fleet::kKinds + 1);
  if (kind == neuron::fleet::kKinds) {
    documents.agents["n"] = {"d/agent", text, ""};
  } else {
    documents.list(static_cast<Kind>(kind)).push_back(text);
    const auto page = neuron::fleet::kept_page(static_cast<Kind>(kind), text);
    if (page) documents.list(static_cast<Kind>(kind)).push_back(page->text);
  }
  show(documents);
  neuron::fleet::anonymise(documents);
  show(documents);
  return 0;
}
