#include "tools/neuron-agent/dra_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <functional>
#include <map>

#include "agent/base/parse.h"
#include "agent/kube/api.h"
#include "plugin/dra/slices/slice_layout.h"
#include "tools/neuron-agent/mode_options.h"

namespace neuron::agent {
namespace {

using plugin::dra::Partitions;
using plugin::dra::UltraServer;

const std::map<std::string, Partitions> kPartitions = {
    {"none", Partitions::none}, {"cores", Partitions::cores}, {"groups", Partitions::groups}, {"all", Partitions::all}};
const std::map<std::string, UltraServer> kUltraServer = {{"node", UltraServer::node},
                                                         {"devices", UltraServer::devices}};

template <typename Value>
std::string word_of(const std::map<std::string, Value>& words, Value value) {
  const auto found = std::find_if(words.begin(), words.end(), [&](const auto& one) { return one.second == value; });
  return found == words.end() ? "" : found->first;
}

template <typename Value>
CLI::Option* add_word(CLI::App& command, const std::string& flag, const std::map<std::string, Value>& words,
                      Value& value, const std::string& help) {
  std::vector<std::string> names;
  for (const auto& [name, unused] : words) names.push_back(name);
  return command
      .add_option_function<std::string>(
          flag, [&words, &value](const std::string& word) { value = words.at(word); }, help)
      ->check(CLI::IsMember(names).description(""))
      ->default_str(word_of(words, value));
}

// One or more names as a node has them, joined by '/'.
Result<void> check_pool_name(const std::string& text) {
  constexpr std::size_t kMostBytes = 253;
  const auto parts = split(text, '/');
  const bool is_pool =
      !parts.empty() && text.size() <= kMostBytes &&
      std::all_of(parts.begin(), parts.end(), [](auto part) { return kube::check_node_name(part).has_value(); });
  return is_pool ? Result<void>{} : refuse_text(text, "is not a pool name: use a node name, or several joined by '/'");
}

Result<void> check_pod_uid(const std::string& text) {
  constexpr std::size_t kMostBytes = 64;
  const auto in_uid = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; };
  if (text.size() > kMostBytes || !std::all_of(text.begin(), text.end(), in_uid)) {
    return refuse_text(text, "is not a pod uid: use at most 64 letters, digits and '-'");
  }
  return {};
}

}  // namespace

void add_dra_options(CLI::App& command, DraOptions& options) {
  add_driver_name(command, options.pool.driver);
  add_word(command, "--dra-partitions", kPartitions, options.pool.partitions,
           "Offered besides whole devices: none, cores,\ngroups, or all; both slow the scheduler")
      ->envname("NEURON_AGENT_DRA_PARTITIONS")
      ->type_name("WHAT");
  add_checked(command, "--dra-pool", options.pool_name, check_pool_name, "Name of the pool (default: the node's)")
      ->envname("NEURON_AGENT_DRA_POOL")
      ->type_name("NAME");
  command
      .add_option_function<std::string>(
          "--dra-taint-effect",
          [&options](const std::string& word) { options.pool.taint_effect = word == "none" ? "" : word; },
          "Taint effect of an unhealthy device:\nNoSchedule, NoExecute, or none")
      ->check(CLI::IsMember({"NoSchedule", "NoExecute", "none"}).description(""))
      ->envname("NEURON_AGENT_DRA_TAINT_EFFECT")
      ->type_name("EFFECT")
      ->default_str(options.pool.taint_effect);
  add_word(command, "--dra-ultraserver", kUltraServer, options.pool.ultraserver,
           "How a node of an UltraServer is offered: as one\ndevice (node), or as its devices")
      ->envname("NEURON_AGENT_DRA_ULTRASERVER")
      ->type_name("HOW");
  command
      .add_option_function<std::string>(
          "--dra-server",
          [&options](const std::string& text) {
            auto layout = plugin::dra::layout_for(text);
            if (!layout) throw CLI::ValidationError("--dra-server", layout.error().message);
            options.server = text;
            options.layout = *layout;
          },
          "With --once: print the slices for a server of this\nversion; other gates follow, separated by commas")
      ->envname("NEURON_AGENT_DRA_SERVER")
      ->type_name("VERSION");
  add_checked(command, "--pod-uid", options.pod_uid, check_pod_uid,
              "Uid of this pod, which lets its successor run\nbeside it")
      ->envname("POD_UID")
      ->type_name("UID");
}

Result<void> check_dra_options(std::string_view node_name) {
  if (node_name.empty()) {
    return fail(ErrorCode::invalid_argument,
                "--mode dra needs --node-name (or NODE_NAME), the name of this node's object in the API server");
  }
  if (auto name = kube::check_node_name(node_name); !name)
    return fail(std::move(name).error().with_context("--node-name"));
  return {};
}

std::vector<std::string> describe_dra(const DraOptions& options, const std::string& node_name) {
  const auto or_words = [](const std::string& text, const char* words) { return text.empty() ? words : text; };
  return {"dra-driver-name=" + options.pool.driver,
          "dra-partitions=" + word_of(kPartitions, options.pool.partitions),
          "dra-pool=" + (options.pool_name.empty() ? node_name : options.pool_name),
          "dra-taint-effect=" + or_words(options.pool.taint_effect, "none"),
          "dra-ultraserver=" + word_of(kUltraServer, options.pool.ultraserver),
          "dra-server=" + or_words(options.server, "unsaid"),
          "pod-uid=" + or_words(options.pod_uid, "unknown")};
}

}  // namespace neuron::agent
