#include "tools/neuron-sim/kubelet/shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <optional>
#include <ostream>
#include <utility>

#include "tools/neuron-sim/kubelet/explain.h"
#include "tools/neuron-sim/kubelet/report.h"

namespace neuron::sim {

Shell::Shell(FakeKubelet& kubelet, std::ostream& out, std::ostream& errors, std::chrono::milliseconds wait_timeout,
             HostReader read_host)
    : kubelet_(kubelet), out_(out), errors_(errors), wait_timeout_(wait_timeout), read_host_(std::move(read_host)) {}

int Shell::run(std::istream& input, std::string_view prompt) {
  int exit_code = 0;
  std::string line;
  for (int number = 1; out_ << prompt << std::flush, std::getline(input, line); ++number) {
    const auto command = parse_command(line);
    if (command && *command && (*command)->verb == Verb::quit) break;
    const Result<void> done = !command ? fail(command.error()) : *command ? execute(**command) : Result<void>();
    if (!done) {
      errors_ << "line " << number << ": " << done.error().message << "\n" << std::flush;
      exit_code = 1;
    }
  }
  return exit_code;
}

Result<void> Shell::execute(const Command& command) {
  switch (command.verb) {
    case Verb::pod:
      admit(command.pod);
      break;
    case Verb::remove:
      TRY(kubelet_.remove(command.pod.name, command.pod.ns));
      out_ << "pod " << command.pod.name << ": deleted\n";
      break;
    case Verb::start:
      return start(command.pod);
    case Verb::list:
      out_ << pods_text(kubelet_.pods());
      break;
    case Verb::show:
      out_ << resources_text(kubelet_.resources());
      break;
    case Verb::wait:
      return wait(command.counts);
    case Verb::restart:
      TRY(kubelet_.restart());
      out_ << "kubelet: restarted; plugin sockets wiped, checkpoint loaded\n";
      break;
    case Verb::down:
      kubelet_.go_down();
      out_ << "kubelet: down\n";
      break;
    case Verb::up:
      TRY(kubelet_.come_up());
      out_ << "kubelet: up; plugin sockets wiped, checkpoint loaded\n";
      break;
    case Verb::advance:
      kubelet_.advance(command.duration);
      break;
    case Verb::echo:
      out_ << command.text << "\n";
      break;
    case Verb::help:
      out_ << script_help();
      break;
    case Verb::quit:
      break;
  }
  out_ << std::flush;
  return {};
}

void Shell::admit(const PodSpec& pod) {
  std::optional<model::HostScan> host;
  if (read_host_) host = read_host_();
  const NodeUse before{kubelet_.pods(), kubelet_.resources()};
  const Result<PodResult> result = kubelet_.admit(pod);
  const NodeUse after{kubelet_.pods(), kubelet_.resources()};
  out_ << pod_text(pod, result, explain_pod(pod, result, before, after, host ? &*host : nullptr));
}

Result<void> Shell::start(const PodSpec& pod) {
  const auto pods = kubelet_.pods();
  const auto found =
      std::find_if(pods.begin(), pods.end(), [&](const PodView& p) { return p.name == pod.name && p.ns == pod.ns; });
  if (found == pods.end())
    return fail(ErrorCode::not_found, fmt::format("no pod {} in namespace {}", pod.name, pod.ns));
  const std::string& container = pod.containers.empty() ? found->containers.back().name : pod.containers[0].name;
  TRY_ASSIGN(const ContainerGrant grant, kubelet_.start_container(pod.name, container, pod.ns));
  out_ << "pod " << pod.name << ": container restarted\n" << container_text(grant) << std::flush;
  return {};
}

Result<void> Shell::wait(const std::map<std::string, int>& counts) {
  const auto begin = std::chrono::steady_clock::now();
  const bool reached = kubelet_.wait_for(
      [&] {
        const auto resources = kubelet_.resources();
        return std::all_of(counts.begin(), counts.end(), [&](const auto& wanted) {
          const auto view = resources.find(wanted.first);
          return (view == resources.end() ? 0 : view->second.allocatable) == wanted.second;
        });
      },
      wait_timeout_);
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  for (const auto& [resource, wanted] : counts) {
    const ResourceView view = kubelet_.resource_view(resource);
    if (!reached && view.allocatable != wanted) {
      return fail(ErrorCode::deadline_exceeded,
                  fmt::format("waited {} ms for {}={}: {} of {} allocatable", waited.count(), resource, wanted,
                              view.allocatable, view.capacity));
    }
  }
  for (const auto& [resource, wanted] : counts) {
    const ResourceView view = kubelet_.resource_view(resource);
    out_ << fmt::format("{}: {} of {} allocatable\n", resource, view.allocatable, view.capacity);
  }
  out_ << fmt::format("reached after {} ms\n", waited.count()) << std::flush;
  return {};
}

}  // namespace neuron::sim
