#include "tools/pods/pod_query.h"

#include <unistd.h>

#include <cerrno>

#include "agent/base/child_process.h"
#include "tools/pods/pod_lines.h"

namespace neuron::pods {

Result<std::vector<model::Allocation>> query_pods_with(const std::string& program, const std::string& socket,
                                                       std::chrono::milliseconds deadline) {
  TRY_ASSIGN(const ChildOutcome answer,
             run_program({program, socket, std::to_string(deadline.count())}, deadline, kMaxAnswerBytes));
  if (answer.end == ChildOutcome::End::out_of_time) {
    return fail(ErrorCode::deadline_exceeded, "the kubelet did not answer in time (" + socket + ")");
  }
  if (answer.end == ChildOutcome::End::cut) return fail(ErrorCode::data_corrupt, "neuron-pods: its answer is too long");
  if (!answer.output.empty()) return parse_pod_lines(answer.output);
  const std::string complaint = complaint_of(answer);
  return fail(ErrorCode::unavailable, complaint.empty() ? "neuron-pods ended without an answer" : complaint);
}

Result<std::vector<model::Allocation>> query_pods(const std::string& socket, std::chrono::milliseconds deadline) {
  TRY_ASSIGN(const std::string program, find_helper("neuron-pods"));
  if (::access(socket.c_str(), R_OK | W_OK) != 0) return fail(error_from_errno(errno, socket));
  return query_pods_with(program, socket, deadline);
}

}  // namespace neuron::pods
