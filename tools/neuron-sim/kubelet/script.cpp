#include "tools/neuron-sim/kubelet/shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "agent/base/parse.h"
#include "agent/model/resource.h"

namespace neuron::sim {
namespace {

constexpr int kMaxUnits = 100'000;

constexpr std::pair<std::string_view, Verb> kVerbs[] = {
    {"pod", Verb::pod},   {"delete", Verb::remove},   {"start", Verb::start},     {"list", Verb::list},
    {"show", Verb::show}, {"wait", Verb::wait},       {"restart", Verb::restart}, {"down", Verb::down},
    {"up", Verb::up},     {"advance", Verb::advance}, {"echo", Verb::echo},       {"help", Verb::help},
    {"quit", Verb::quit},
};

using Words = std::vector<std::string_view>;

Words words_of(std::string_view line) {
  Words words;
  for (std::size_t end = 0, at = 0; (at = line.find_first_not_of(" \t", end)) != std::string_view::npos;) {
    end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
  }
  return words;
}

tl::unexpected<Error> wrong(std::string text) {
  return fail(ErrorCode::invalid_argument, std::move(text));
}

// "NAME" or "NAMESPACE/NAME".
void set_pod_name(PodSpec& pod, std::string_view word) {
  const std::size_t slash = word.find('/');
  if (slash != std::string_view::npos) pod.ns = word.substr(0, slash);
  pod.name = word.substr(slash == std::string_view::npos ? 0 : slash + 1);
}

// "main", "init/setup" or "sidecar/proxy".
Result<ContainerSpec> parse_container(std::string_view word) {
  ContainerSpec container;
  const std::size_t slash = word.find('/');
  const std::string_view kind = slash == std::string_view::npos ? std::string_view() : word.substr(0, slash);
  if (kind == "init") {
    container.kind = ContainerKind::init;
  } else if (kind == "sidecar") {
    container.kind = ContainerKind::restartable_init;
  } else if (!kind.empty()) {
    return wrong(fmt::format("container \"{}\": only init/ and sidecar/ may stand before a name", printable(word)));
  }
  container.name = word.substr(slash == std::string_view::npos ? 0 : slash + 1);
  if (container.name.empty()) return wrong("a container without a name");
  return container;
}

// "chips@neuron-device-3,efa-rdmap16s25".
Result<void> add_claim(ContainerSpec& container, std::string_view word) {
  const std::size_t at = word.find('@');
  const std::string name(word.substr(0, at));
  std::vector<std::string> devices;
  for (const std::string_view device : split(word.substr(at + 1), ',')) devices.emplace_back(device);
  const bool whole = !name.empty() && !devices.empty() && std::ranges::none_of(devices, &std::string::empty);
  if (!whole) return wrong(fmt::format("\"{}\" is not CLAIM@DEVICE,...", printable(word)));
  if (!container.claims.emplace(name, std::move(devices)).second) {
    return wrong(fmt::format("\"{}\" names a claim twice", printable(word)));
  }
  return {};
}

// A word is "RES=N" or "CLAIM@DEVICE,...", "CONTAINER:" before either, or "CONTAINER:". Words before the first
// container belong to "main".
Result<void> add_word(PodSpec& pod, std::string_view word) {
  if (const std::size_t colon = word.find(':'); colon != std::string_view::npos) {
    TRY_ASSIGN(auto container, parse_container(word.substr(0, colon)));
    pod.containers.push_back(std::move(container));
    word.remove_prefix(colon + 1);
    if (word.empty()) return {};
  }
  if (pod.containers.empty()) pod.containers.push_back(ContainerSpec{"main"});
  if (word.find('@') != std::string_view::npos) return add_claim(pod.containers.back(), word);
  TRY_ASSIGN(const auto count, parse_count(word));
  if (!pod.containers.back().requests.insert(count).second) {
    return wrong(fmt::format("\"{}\" asks twice for {}", printable(word), count.first));
  }
  return {};
}

Result<void> parse_pod(Command& command, const Words& words) {
  if (words.size() < 2) return wrong("pod needs a name, for example: pod train neuron=4 efa=4");
  set_pod_name(command.pod, words[1]);
  for (std::size_t i = 2; i < words.size(); ++i) TRY(add_word(command.pod, words[i]));
  if (command.pod.containers.empty()) command.pod.containers.push_back(ContainerSpec{"main"});
  return {};
}

Result<void> parse_named(Command& command, const Words& words, std::size_t max_words) {
  if (words.size() < 2 || words.size() > max_words) {
    return wrong(fmt::format("{} needs the name of a pod", printable(words[0])));
  }
  set_pod_name(command.pod, words[1]);
  if (words.size() > 2) command.pod.containers.push_back(ContainerSpec{std::string(words[2])});
  return {};
}

Result<void> parse_wait(Command& command, const Words& words) {
  if (words.size() < 2) return wrong("wait needs RESOURCE=N, for example: wait neuron=16");
  for (std::size_t i = 1; i < words.size(); ++i) {
    TRY_ASSIGN(auto count, parse_count(words[i]));
    command.counts.insert_or_assign(std::move(count.first), count.second);
  }
  return {};
}

Result<void> parse_advance(Command& command, const Words& words) {
  if (words.size() != 2) return wrong("advance needs a duration, for example: advance 5m");
  TRY_ASSIGN(command.duration, parse_duration(words[1]));
  return {};
}

Result<void> parse_arguments(Command& command, const Words& words, std::string_view line) {
  switch (command.verb) {
    case Verb::pod:
      return parse_pod(command, words);
    case Verb::remove:
      return parse_named(command, words, 2);
    case Verb::start:
      return parse_named(command, words, 3);
    case Verb::wait:
      return parse_wait(command, words);
    case Verb::advance:
      return parse_advance(command, words);
    case Verb::echo:
      command.text = trim(line.substr(line.find(words[0]) + words[0].size()));
      return {};
    default:
      break;
  }
  if (words.size() > 1) return wrong(fmt::format("{} takes no argument", printable(words[0])));
  return {};
}

}  // namespace

std::string full_resource_name(std::string_view name) {
  for (const model::Resource resource : model::kAllResources) {
    if (name == model::short_name(resource)) return std::string(model::resource_name(resource));
  }
  return std::string(name);
}

std::string short_resource_name(std::string_view name) {
  const auto resource = model::parse_resource(name);
  return std::string(resource ? model::short_name(*resource) : name);
}

Result<std::pair<std::string, int>> parse_count(std::string_view text) {
  const std::size_t equals = text.find('=');
  const auto count = parse_int(equals == std::string_view::npos ? "" : text.substr(equals + 1), 0, kMaxUnits);
  if (equals == 0 || !count) return wrong(fmt::format("\"{}\" is not RESOURCE=NUMBER", printable(text)));
  return std::pair(full_resource_name(text.substr(0, equals)), *count);
}

Result<std::optional<Command>> parse_command(std::string_view line) {
  const Words words = words_of(trim(line));
  if (words.empty() || words[0].starts_with('#')) return std::optional<Command>();
  for (const auto& [name, verb] : kVerbs) {
    if (words[0] != name) continue;
    Command command;
    command.verb = verb;
    TRY(parse_arguments(command, words, line));
    return std::optional(std::move(command));
  }
  return wrong(fmt::format("unknown command \"{}\" (help lists them)", printable(words[0])));
}

std::string_view script_help() {
  return R"(Commands, one per line:
  pod NAME RES=N...         admit a pod with one container, say what it gets
  pod NAME C:RES=N... C:    the same with containers of these names; init/C: and
                            sidecar/C: are init containers
  pod NAME CLAIM@DEVICE,... with a claim of our driver that PodResources shows,
                            e.g. chips@neuron-device-3,efa-rdmap16s25
  delete NAME               end a pod; its devices are freed lazily
  start NAME [CONTAINER]    restart a container of a running pod
  list                      pods and the devices they hold
  show                      resources: capacity, allocatable, in use, unhealthy
  wait RES=N...             wait until so many units are allocatable
  restart                   restart the kubelet: wipe sockets, load checkpoint
  down, up                  the two halves of restart
  advance TIME              move the clock, e.g. 5m: the grace of a lost plugin
  echo TEXT                 print TEXT
  help, quit
NAME may be NAMESPACE/NAME. RES is neuron, neuroncore, neurondevice, efa or a
full resource name.
)";
}

}  // namespace neuron::sim
