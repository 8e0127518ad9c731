// What an API server may answer: to lists, watches and questions for a node or its versions; and what may be given as
// names of nodes and labels. The first byte says how a watch's bytes arrive.

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "agent/kube/api.h"
#include "agent/kube/transfer.h"

namespace {

using neuron::ErrorCode;

void require(bool holds) {
  if (!holds) std::abort();
}

// Copies, compares and prints it, as those do who are told of objects.
void use(const neuron::kube::ApiObject& object) {
  require(!object.name.empty() && !object.resource_version.empty());
  const nlohmann::json copy = object.json;
  require(copy == object.json);
  static_cast<void>(copy.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void read_line(std::string_view text) {
  const auto line = neuron::kube::parse_watch_line(text);
  if (!line) return require(line.error().code == ErrorCode::data_corrupt);
  using Kind = neuron::kube::WatchLine::Kind;
  if (line->kind == Kind::upsert || line->kind == Kind::remove) use(line->object);
  require(!line->resource_version.empty() || line->kind == Kind::error || line->kind == Kind::expired);
  require(neuron::printable(line->words, 300) == line->words);
}

// The lines are the same whatever the pieces are.
void read_watch(std::string_view text, std::size_t piece) {
  constexpr std::size_t kMaxLine = 200;
  std::string in_pieces;
  neuron::kube::LineSplitter splitter(kMaxLine);
  auto state = neuron::kube::LineSplitter::State::going;
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(std::min(piece, rest.size()))) {
    state = splitter.take(rest.substr(0, piece), [&](std::string_view line) {
      require(!line.empty() && line.size() <= kMaxLine);
      read_line(line);
      in_pieces.append(line).append("\n");
      return true;
    });
  }
  std::string at_once;
  neuron::kube::LineSplitter another(kMaxLine);
  require(another.take(text, [&](std::string_view line) { return at_once.append(line).append("\n"), true; }) == state);
  require(in_pieces == at_once);
}

void read_versions(std::string_view text) {
  const auto version = neuron::kube::parse_server_version(text);
  require(version ? version->major >= 0 && version->minor >= 0 : version.error().code == ErrorCode::data_corrupt);
}

void read_names(std::string_view text) {
  const bool is_path_part = text.find_first_of("/?#%\r\n\t ") == std::string_view::npos && !text.empty();
  if (neuron::kube::check_node_name(text)) require(is_path_part && text.size() <= 253);
  if (neuron::kube::check_label_key(text)) require(text.size() <= 253 + 1 + 63);
  const std::string encoded = neuron::kube::percent_encoded(text);
  require(std::all_of(encoded.begin(), encoded.end(), [](char letter) {
    return std::string_view("/?#&= \\").find(letter) == std::string_view::npos && letter > ' ' && letter < 0x7f;
  }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto label = neuron::kube::label_in(text, "neuron-agent/simulate", "https://[::1]:6443/api/v1/nodes/n1");
  require(label || label.error().code == ErrorCode::data_corrupt);
  const auto page = neuron::kube::parse_list_page(text);
  require(page ? !page->resource_version.empty() : page.error().code == ErrorCode::data_corrupt);
  if (page) std::for_each(page->objects.begin(), page->objects.end(), use);
  const std::string said = neuron::kube::status_error({403, std::string(text)}, "GET /x").message;
  require(neuron::printable(said, said.size()) == said);
  read_line(text);
  if (size > 0) read_watch(text.substr(1), std::size_t{1} + data[0]);
  read_versions(text);
  read_names(text);
  return 0;
}
