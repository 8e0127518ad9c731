#include "agent/host/fabric_probe.h"

#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "agent/base/child_process.h"
#include "agent/base/fd.h"
#include "agent/base/parse.h"

namespace neuron::host {
namespace {

using preflight::FabricFacts;

// libfabric's headers give the types only; functions are looked up in the loaded library, at the symbol versions of
// those headers, which later libraries keep.
struct FabricLibrary {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
  decltype(&::fi_version) version = nullptr;
  [[nodiscard]] bool complete() const {
    return getinfo != nullptr && freeinfo != nullptr && dupinfo != nullptr && strerror != nullptr && version != nullptr;
  }
};

template <typename Function>
void look_up(void* library, const char* name, const char* symbol_version, Function& function) {
  void* symbol = ::dlvsym(library, name, symbol_version);
  if (symbol == nullptr) symbol = ::dlsym(library, name);
  std::memcpy(&function, &symbol, sizeof function);  // POSIX: a symbol's address is a function's
}

FabricLibrary functions_of(void* library) {
  FabricLibrary fabric;
  look_up(library, "fi_getinfo", "FABRIC_1.3", fabric.getinfo);
  look_up(library, "fi_freeinfo", "FABRIC_1.3", fabric.freeinfo);
  look_up(library, "fi_dupinfo", "FABRIC_1.3", fabric.dupinfo);
  look_up(library, "fi_strerror", "FABRIC_1.0", fabric.strerror);
  look_up(library, "fi_version", "FABRIC_1.0", fabric.version);
  return fabric;
}

// The answer is made of lines, so a text must not add its own.
std::string one_line(const char* text) {
  std::string line = text != nullptr ? text : "";
  for (char& letter : line) {
    if (letter == '\n' || letter == '\r') letter = ' ';
  }
  return line;
}

std::string name_of(const fi_info& info) {
  if (info.nic != nullptr && info.nic->device_attr != nullptr && info.nic->device_attr->name != nullptr) {
    return one_line(info.nic->device_attr->name);
  }
  if (info.domain_attr != nullptr && info.domain_attr->name != nullptr) {
    return nic_of_domain(one_line(info.domain_attr->name));
  }
  return "";
}

std::string ask(const FabricLibrary& fabric, const std::string& provider) {
  const std::uint32_t version = fabric.version();
  std::string answer = "version " + std::to_string(FI_MAJOR(version)) + '.' + std::to_string(FI_MINOR(version)) + '\n';
  fi_info* hints = fabric.dupinfo(nullptr);  // what the header's fi_allocinfo does
  if (hints == nullptr || hints->fabric_attr == nullptr || hints->domain_attr == nullptr) {
    return answer + "error " + std::to_string(FI_ENOMEM) + " no memory for hints\ndone\n";
  }
  hints->mode = ~std::uint64_t{0};
  hints->domain_attr->mode = ~std::uint64_t{0};
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->fabric_attr->prov_name = ::strdup(provider.c_str());  // freed by fi_freeinfo
  fi_info* found = nullptr;
  const int result = fabric.getinfo(FI_VERSION(1, 9), nullptr, nullptr, 0, hints, &found);
  if (result != 0) {
    answer += "error " + std::to_string(-result) + ' ' + one_line(fabric.strerror(-result)) + '\n';
  }
  for (const fi_info* info = found; info != nullptr; info = info->next) answer += "interface " + name_of(*info) + '\n';
  if (found != nullptr) fabric.freeinfo(found);
  fabric.freeinfo(hints);
  return answer + "done\n";
}

// Asks the first of `libraries` that loads for the interfaces of `provider` and writes the answer to `output` in the
// form of parse_fabric_answer(). Returns an exit status. Runs foreign code: only in a child of run_in_child. The
// library's own warnings go to standard error.
int ask_fabric_library(const std::vector<std::string>& libraries, const std::string& provider, int output) {
  ::setenv("FI_LOG_LEVEL", "warn", 1);
  ::unsetenv("FI_PROVIDER");  // the provider is given by name
  std::string refusal = "no library named";
  for (const std::string& name : libraries) {
    void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      if (&name == &libraries.front()) refusal = one_line(::dlerror());
      continue;
    }
    const FabricLibrary fabric = functions_of(library);
    const std::string answer =
        fabric.complete() ? ask(fabric, provider) : "missing " + name + " lacks the functions of libfabric\ndone\n";
    return write_all(output, answer, "the answer") ? 0 : 1;  // never unloaded: some providers keep threads
  }
  return write_all(output, "missing " + refusal + "\ndone\n", "the answer") ? 0 : 1;
}

constexpr std::size_t kMaxBytes = std::size_t{64} << 10U;
constexpr std::size_t kMaxInterfaces = 256;
constexpr std::size_t kMaxLogLines = 3;
constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxMessage = 200;

// The last lines that name `provider`, without libfabric's prefix of process and time. Other providers warn as well.
std::vector<std::string> last_lines(std::string_view text, const std::string& provider) {
  std::vector<std::string> lines;
  for (std::string_view line : split(text, '\n')) {
    if (line.starts_with("libfabric:")) line.remove_prefix(std::min(line.find("::"), line.size() - 2) + 2);
    if (line.find(provider) == std::string_view::npos) continue;
    lines.push_back(printable(line, kMaxMessage));
    if (lines.size() > kMaxLogLines) lines.erase(lines.begin());
  }
  return lines;
}

void parse_line(std::string_view line, FabricFacts& facts, std::set<std::string>& names, bool& done) {
  const auto space = line.find(' ');
  const std::string_view word = line.substr(0, space);
  const std::string_view rest = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
  if (word == "done") done = true;
  if (word == "version") facts.version = printable(rest, kMaxName);
  if (word == "interface" && !rest.empty() && names.size() < kMaxInterfaces) names.insert(printable(rest, kMaxName));
  if (word == "missing") {
    facts.state = FabricFacts::State::no_library;
    facts.message = printable(rest, kMaxMessage);
  }
  if (word != "error") return;
  const auto end = rest.find(' ');
  facts.error_code = parse_int(rest.substr(0, end), 1, 100000).value_or(0);
  if (end != std::string_view::npos) facts.message = printable(rest.substr(end + 1), kMaxMessage);
}

}  // namespace

std::string nic_of_domain(std::string_view domain) {
  for (const std::string_view suffix : {"-rdm", "-dgrm"}) {
    if (domain.ends_with(suffix)) return std::string(domain.substr(0, domain.size() - suffix.size()));
  }
  return std::string(domain);
}

preflight::FabricFacts parse_fabric_answer(std::string_view text) {
  FabricFacts facts;
  facts.state = FabricFacts::State::answered;
  std::set<std::string> names;
  bool done = false;
  for (const std::string_view line : split(text, '\n')) parse_line(line, facts, names, done);
  facts.interfaces.assign(names.begin(), names.end());
  if (done) return facts;
  facts.state = FabricFacts::State::failed;
  facts.message = "the answer is truncated";
  return facts;
}

preflight::FabricFacts probe_fabric(const FabricRequest& request) {
  const auto outcome =
      run_in_child([&](int output) { return ask_fabric_library(request.libraries, request.provider, output); },
                   request.budget, kMaxBytes);
  FabricFacts facts = parse_fabric_answer(outcome ? outcome->output : "");
  if (!outcome) {
    facts.message = printable(outcome.error().message, kMaxMessage);
    return facts;
  }
  switch (outcome->end) {
    case ChildOutcome::End::exited:
      if (facts.state == FabricFacts::State::failed && outcome->status != 0) {
        facts.message = "the child ended with status " + std::to_string(outcome->status);
      }
      break;
    case ChildOutcome::End::killed:
      facts.state = FabricFacts::State::died;
      facts.signal = outcome->status;
      break;
    case ChildOutcome::End::out_of_time:
      facts.state = FabricFacts::State::timed_out;
      break;
    case ChildOutcome::End::cut:
      facts.state = FabricFacts::State::failed;
      facts.message = "the answer is too long";
      break;
  }
  facts.provider = request.provider;
  facts.budget = request.budget;
  facts.log = last_lines(outcome->errors, request.provider);
  return facts;
}

}  // namespace neuron::host
