#include "tools/pods/pods.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "agent/base/child_process.h"
#include "agent/base/parse.h"

namespace neuron::pods {
namespace {

constexpr std::string_view kFirstLine = "neuron-pods/2";
constexpr std::string_view kLastLine = "end";
constexpr std::size_t kMaxNameBytes = 512;   // written; longer names are cut and marked
constexpr std::size_t kMaxReadBytes = 1024;  // read
constexpr std::ptrdiff_t kNames = 5;         // in each line, before the ids

// A name or id as it is written: without control bytes, of bounded length.
std::string name_of(std::string_view text) {
  return printable(text, kMaxNameBytes);
}

bool is_name(std::string_view text) {
  return text.size() <= kMaxReadBytes && printable(text, kMaxReadBytes) == text;
}

Result<model::Allocation> parse_line(std::string_view line) {
  const auto parts = split(line, '\t');
  if (parts.size() < kNames) return fail(ErrorCode::data_corrupt, "neuron-agent pods: a line has fewer than 5 fields");
  if (!std::ranges::all_of(parts, is_name)) {
    return fail(ErrorCode::data_corrupt, "neuron-agent pods: a name is not printable UTF-8, or is too long");
  }
  const auto text = [&parts](std::size_t part) { return std::string(parts[part]); };
  model::Allocation allocation{text(0), text(1), text(2), text(3), {}};
  allocation.claim = text(4);
  allocation.ids.assign(parts.begin() + kNames, parts.end());
  return allocation;
}

}  // namespace

std::string format_pod_lines(const std::vector<model::Allocation>& allocations) {
  std::string text = std::string(kFirstLine) + '\n';
  for (const model::Allocation& one : allocations) {
    text += name_of(one.pod_namespace);
    for (const std::string* name : {&one.pod, &one.container, &one.resource_name, &one.claim}) {
      text += '\t' + name_of(*name);
    }
    for (const std::string& id : one.ids) text += '\t' + name_of(id);
    text += '\n';
  }
  return text.append(kLastLine) + '\n';
}

Result<std::vector<model::Allocation>> parse_pod_lines(std::string_view text) {
  std::vector<model::Allocation> allocations;
  bool first = true;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (first) {
      if (line != kFirstLine) return fail(ErrorCode::data_corrupt, "neuron-agent pods: answers in another version");
      first = false;
    } else if (line == kLastLine) {
      return allocations;
    } else {
      TRY_ASSIGN(auto allocation, parse_line(line));
      allocations.push_back(std::move(allocation));
    }
  }
  return fail(ErrorCode::data_corrupt, "neuron-agent pods: its answer is not whole");
}

Result<std::vector<model::Allocation>> query_pods_with(std::vector<std::string> command, const std::string& socket,
                                                       std::chrono::milliseconds deadline) {
  command.insert(command.end(), {socket, std::to_string(deadline.count())});
  TRY_ASSIGN(const ChildOutcome answer, run_program(command, deadline, kMaxAnswerBytes));
  if (answer.end == ChildOutcome::End::out_of_time) {
    return fail(ErrorCode::deadline_exceeded, "the kubelet did not answer in time (" + socket + ")");
  }
  if (answer.end == ChildOutcome::End::cut)
    return fail(ErrorCode::data_corrupt, "neuron-agent pods: its answer is too long");
  if (!answer.output.empty()) return parse_pod_lines(answer.output);
  const std::string complaint = complaint_of(answer);
  return fail(ErrorCode::unavailable, complaint.empty() ? "neuron-agent pods ended without an answer" : complaint);
}

Result<std::vector<model::Allocation>> query_pods(const std::string& socket, std::chrono::milliseconds deadline) {
  TRY_ASSIGN(const std::string program, find_helper("bin/neuron-agent"));
  if (::access(socket.c_str(), R_OK | W_OK) != 0) return fail(error_from_errno(errno, socket));
  return query_pods_with({program, "pods"}, socket, deadline);
}

}  // namespace neuron::pods
