#include "agent/model/read_problem.h"

namespace neuron::model {

std::string what_is_wrong(const ReadProblem& problem) {
  if (problem.kind == ProblemKind::absent_neighbours) return "names missing devices: " + problem.detail;
  return problem.detail;
}

std::string sentence(const ReadProblem& problem) {
  return problem.path.empty() ? what_is_wrong(problem) : problem.path + ": " + what_is_wrong(problem);
}

std::vector<std::string> sentences(const std::vector<ReadProblem>& problems) {
  std::vector<std::string> lines;
  lines.reserve(problems.size());
  for (const ReadProblem& problem : problems) lines.push_back(sentence(problem));
  return lines;
}

}  // namespace neuron::model
