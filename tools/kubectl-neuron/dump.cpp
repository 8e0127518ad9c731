#include "tools/kubectl-neuron/dump.h"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "agent/host/root_source.h"
#include "agent/kube/answers.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/neuron-gather/output.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::size_t kMaxFile = 128 * kMiB;  // dump.json has the metrics of all agents
constexpr std::size_t kMaxPage = 64 * kMiB;   // twice the largest answer that is taken of a server
constexpr std::size_t kMaxReport = 8 * kMiB;  // likewise, of an agent
constexpr std::size_t kMaxObject = 4 * kMiB;  // etcd keeps 1.5 MiB
constexpr std::size_t kMaxLists = 512 * kMiB;
constexpr std::size_t kMostObjects = 250'000;  // of a kind
constexpr host::ArchiveBounds kBounds{
    .entries = 200'000, .total_bytes = std::uint64_t{2} << 30U, .file_bytes = kMaxFile, .path_bytes = 256, .depth = 4};
constexpr std::size_t kMostPages = 10'000;

std::string file_of(std::string_view folder, std::size_t number) {
  return std::string(folder) + "/" + std::to_string(number) + ".json";
}

std::string index_text(const Documents& documents) {
  json index = {
      {"format", kDumpFormat},        {"read_at", documents.read_at}, {"namespace", documents.default_namespace},
      {"unknown", documents.unknown}, {"partial", documents.partial}, {"agents", json::object()}};
  std::size_t number = 0;
  for (const auto& [node, answer] : documents.agents) {
    json& one = index["agents"][node];
    one = {{"pod", answer.pod}};
    if (answer.body.empty()) {
      one["missing"] = answer.missing;
    } else {
      one["file"] = file_of("agents", number++);
      if (!answer.metrics.empty()) one["metrics"] = answer.metrics;
    }
  }
  return index.dump(1, ' ', false, json::error_handler_t::replace) + '\n';
}

constexpr std::size_t kMostMetricsBytes = kMiB;

// Errors name the file in the dump, not where an archive was unpacked.
Result<std::string> read_file(const std::string& directory, const std::string& name, std::size_t most) {
  auto text = read_text_file(directory + "/" + name, most);
  if (text) return text;
  Error error = std::move(text).error();
  if (error.message.starts_with(directory + "/")) error.message.erase(0, directory.size() + 1);
  return fail(std::move(error));
}

// "agents/12.json": nothing else is opened.
bool is_agent_file(std::string_view name) {
  constexpr std::string_view kFolder = "agents/", kEnd = ".json";
  if (!name.starts_with(kFolder) || !name.ends_with(kEnd) || name.size() <= kFolder.size() + kEnd.size()) return false;
  return is_digits(name.substr(kFolder.size(), name.size() - kFolder.size() - kEnd.size()));
}

struct AgentFile {
  AgentAnswer* answer = nullptr;
  std::string name;
};

void read_agent(const AgentFile& file, const std::string& directory, bool reports) {
  AgentAnswer& answer = *file.answer;
  if (is_agent_file(file.name)) {
    auto body = read_file(directory, file.name, kMaxReport);
    if (!body) answer.missing = "the dump lacks it: " + body.error().message;
    if (body) answer.body = *std::move(body);
  }
  if (answer.body.empty() && answer.missing.empty()) answer.missing = "the dump has no answer of this agent";
  if (reports && answer.missing.empty()) parse_report(answer);
}

// Some at once: most of the time goes to parsing.
void read_agents(const std::vector<AgentFile>& files, const std::string& directory, bool reports) {
  constexpr std::size_t kFilesOfThread = 32, kMostThreads = 4;
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t at = next++; at < files.size(); at = next++) read_agent(files[at], directory, reports);
  };
  std::vector<std::jthread> others;
  const std::size_t most = std::min<std::size_t>(kMostThreads, std::thread::hardware_concurrency());
  for (std::size_t i = 1; i < most && i * kFilesOfThread < files.size(); ++i) others.emplace_back(work);
  work();
}

Result<std::vector<AgentFile>> read_index(Documents& documents, const std::string& directory) {
  TRY_ASSIGN(const std::string text, read_file(directory, "dump.json", kMaxFile));
  TRY_ASSIGN(const json index, kube::parse_object(text, "dump.json"));
  const std::string format = kube::text_of(index, "format");
  if (format != kDumpFormat) {
    return fail(ErrorCode::data_corrupt,
                "the format is \"" + printable(format) + "\", not " + kDumpFormat + "; use the version that wrote it");
  }
  documents.read_at = kube::text_of(index, "read_at");
  documents.default_namespace = kube::text_of(index, "namespace");
  for (const json& sentence : kube::list_of(index, "unknown")) {
    if (sentence.is_string()) documents.unknown.push_back(sentence.get_ref<const std::string&>());
  }
  for (const json& kind : kube::list_of(index, "partial")) {
    if (kind.is_string()) documents.partial.insert(kind.get_ref<const std::string&>());
  }
  const json& agents = kube::member(index, "agents");
  std::vector<AgentFile> files;
  if (!agents.is_object()) return files;
  for (const auto& [node, one] : agents.items()) {
    AgentAnswer& answer = documents.agents[node];
    answer.pod = kube::text_of(one, "pod", 512);
    answer.missing = kube::text_of(one, "missing", 4096);
    answer.metrics = kube::text_of(one, "metrics", kMostMetricsBytes);
    files.push_back({&answer, kube::text_of(one, "file")});
  }
  return files;
}

// Members and list elements of a page down to the objects of its list; larger ones would take many times their size in
// memory once parsed. Errors: data_corrupt, an object larger than any that a cluster keeps.
Result<std::size_t> count_elements(std::string_view page) {
  constexpr int kObjectDepth = 3;
  std::size_t elements = 0, begin = 0;
  int depth = 0;
  for (std::size_t at = 0; at < page.size(); ++at) {
    const char c = page[at];
    if (c == '"') {
      for (++at; at < page.size() && page[at] != '"'; ++at) at += page[at] == '\\' ? 1 : 0;
      continue;
    }
    if (c == ',' && depth < kObjectDepth) ++elements;
    if ((c == '{' || c == '[') && ++depth == kObjectDepth) begin = at;
    const bool is_end = c == '}' || c == ']';
    if ((is_end || c == ',') && depth >= kObjectDepth && at - begin > kMaxObject) {
      return fail(ErrorCode::data_corrupt, "an object of more than " + std::to_string(kMaxObject / kMiB) + " MiB");
    }
    if (is_end) --depth;
  }
  return elements;
}

Result<std::string> read_page(const std::string& directory, const std::string& name, std::size_t& objects,
                              std::size_t bytes) {
  TRY_ASSIGN(std::string page, read_file(directory, name, kMaxPage));
  const auto elements = count_elements(page);
  if (!elements) return fail(Error(elements.error()).with_context(name));
  objects += *elements;
  if (objects > kMostObjects)
    return fail(ErrorCode::data_corrupt, name + ": more than " + std::to_string(kMostObjects) + " objects of a kind");
  if (bytes + page.size() > kMaxLists)
    return fail(ErrorCode::data_corrupt, name + ": lists of more than " + std::to_string(kMaxLists / kMiB) + " MiB");
  return page;
}

// A list is missing where it was not read, which the dump says; else a part of the dump is lost.
void say_if_lost(Documents& documents, Kind kind) {
  const std::string plural(plural_of(kind));
  const bool may_be_unserved = kind != Kind::nodes && kind != Kind::pods && kind != Kind::events;
  const bool is_unserved =
      may_be_unserved && std::ranges::find(documents.unknown, kNoClaims) != documents.unknown.end();
  if (is_unserved || documents.partial.contains(plural)) return;
  documents.unknown.push_back(plural + " are not known: the dump lacks its list of " + plural);
  documents.partial.insert(plural);
}

Result<void> read_lists(Documents& documents, const std::string& directory, bool reports) {
  SliceFacts facts;
  std::size_t bytes = 0;
  for (const Kind kind : kAllKinds) {
    std::size_t objects = 0;
    for (std::size_t number = 0; number < kMostPages; ++number) {
      auto page = read_page(directory, file_of(plural_of(kind), number), objects, bytes);
      if (!page && page.error().code == ErrorCode::not_found) {
        if (number == 0) say_if_lost(documents, kind);
        break;
      }
      if (!page) return fail(std::move(page).error());
      const bool is_parsed = kind == Kind::slices && reports && parse_slices(*page, facts, documents.parsed);
      if (is_parsed) continue;
      bytes += page->size();
      documents.list(kind).push_back(*std::move(page));
    }
  }
  return {};
}

}  // namespace

Result<Documents> read_dump(const std::string& path, bool reports) {
  TRY_ASSIGN(const host::RootSource source, host::RootSource::open(path, kBounds));
  const std::string& directory = source.directory();
  if (directory != path) TRY(gather::check_archive(path, 2 * kBounds.total_bytes));
  Documents documents;
  auto files = read_index(documents, directory);
  if (!files) return fail(std::move(files).error().with_context(path + " is no dump of kubectl neuron"));
  read_agents(*files, directory, reports);
  auto lists = read_lists(documents, directory, reports);
  if (!lists) return fail(std::move(lists).error().with_context(path));
  return documents;
}

Result<void> write_dump(const Documents& documents, const std::string& path) {
  gather::Capture capture;
  capture.add_file("dump.json", index_text(documents));
  for (const Kind kind : kAllKinds) {
    std::size_t number = 0;
    for (const std::string& page : documents.list(kind)) capture.add_file(file_of(plural_of(kind), number++), page);
  }
  std::size_t number = 0;
  for (const auto& [node, answer] : documents.agents) {
    if (!answer.body.empty()) capture.add_file(file_of("agents", number++), answer.body);
  }
  if (capture.full()) return fail(ErrorCode::data_corrupt, path + ": the documents are larger than a dump may be");
  return gather::write_output(
      capture, path, [](const gather::Unfinished&) { return true; }, "kubectl-neuron");
}

void add_dump(CLI::App& command, DumpOptions& own) {
  command.add_option("FILE", own.file, "A new .tar.gz or directory; -: standard output")
      ->type_name("")
      ->required()
      ->check(needs_name);
  command.add_flag("--anonymise", own.anonymise, "Replace names of nodes, pods and namespaces");
}

int run_dump(const Options& options, const DumpOptions& own) {
  for (const char* end : {".zip", ".tar", ".gz", ".json", ".xz", ".bz2", ".zst"}) {
    if (!own.file.ends_with(end) || gather::names_archive(own.file)) continue;
    return fail_with(make_error(ErrorCode::invalid_argument,
                                printable(own.file, 400) + ": an archive's name ends in .tar.gz or .tgz"));
  }
  auto documents = documents_of(options, {.agents = true, .metrics = true, .claim_templates = true, .events = true});
  if (!documents) return fail_with(documents.error());
  if (own.anonymise) anonymise(*documents);
  const auto written = write_dump(*documents, own.file);
  return written ? kExitOk : fail_with(written.error());
}

}  // namespace neuron::fleet
