#include <algorithm>

#include "agent/base/parse.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/why.h"

namespace neuron::fleet {
namespace {

// Names that are close to the one that was typed.
std::string similar_to(const Fleet& fleet, const std::string& own, const std::string& name) {
  constexpr std::size_t kMost = 3;
  std::vector<std::pair<std::size_t, std::string>> near;
  const std::string wanted = name.substr(0, 253);
  for (const Pod& pod : fleet.pods) {
    if (pod.name == name) near.emplace_back(0, full_name(pod));
    if (pod.pod_namespace != own || pod.name == name || pod.name.size() > 253) continue;
    const std::size_t distance = edit_distance(wanted, pod.name);
    if (distance <= std::max<std::size_t>(2, name.size() / 3) || pod.name.starts_with(wanted)) {
      near.emplace_back(distance, full_name(pod));
    }
  }
  std::ranges::sort(near);
  std::vector<std::string> names;
  for (const auto& [distance, pod] : near) {
    if (names.size() < kMost) names.push_back(pod);
  }
  return names.empty() ? "" : "; similar: " + some_of(names);
}

}  // namespace

void add_why(CLI::App& command, WhyOptions& own) {
  command.add_option("pod", own.pod, "The pod, NAME or NAMESPACE/NAME")->required()->type_name("POD");
  command.add_option("-o,--output", own.output, "text or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}));
}

int run_why(const Options& options, const WhyOptions& own) {
  Wanted wanted;
  wanted.claim_templates = wanted.events = true;
  const auto fleet = read_fleet(options, wanted);
  if (!fleet) return fail_with(fleet.error());
  print_unknown(*fleet);
  std::string name = own.pod;
  if (name.starts_with("pod/")) name.erase(0, 4);
  const std::size_t slash = name.find('/');
  const std::string in = slash == std::string::npos ? namespace_of(options, *fleet) : name.substr(0, slash);
  if (slash != std::string::npos) name.erase(0, slash + 1);
  const Pod* pod = find_pod(*fleet, in, name);
  if (pod == nullptr) {
    return fail_with(make_error(ErrorCode::not_found, "no pod " + printable(in) + "/" + printable(name, 260) +
                                                          " could be read" + similar_to(*fleet, in, name)));
  }
  const Why answer = why(*fleet, *pod);
  return print(own.output == "json" ? why_json(answer) : why_text(answer), exit_status(answer));
}

}  // namespace neuron::fleet
