#include "tools/neuron-agent/mode_options.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "agent/base/parse.h"
#include "agent/kube/api.h"

namespace neuron::agent {
namespace {

// As the API server wants a driver's name (CSIDriver.metadata.name): RFC 1123, at most 63 bytes.
Result<void> check_driver_name(const std::string& text) {
  constexpr std::size_t kMostBytes = 63;
  if (text.size() > kMostBytes || !kube::check_node_name(text)) {
    return refuse_text(text,
                       "is not a driver name: use at most 63 bytes of lower case letters, digits and '-' in parts "
                       "joined by '.', such as neuron.aws.com");
  }
  return {};
}

}  // namespace

void add_mode(CLI::App& command, std::function<void(Mode)> take, const std::string& help) {
  command
      .add_option_function<std::string>(
          "--mode",
          [take = std::move(take)](const std::string& word) { take(word == "dra" ? Mode::dra : Mode::device_plugin); },
          help)
      ->envname("NEURON_AGENT_MODE")
      ->type_name("MODE")
      ->check(CLI::IsMember({"device-plugin", "dra"}).description(""))
      ->default_str("device-plugin");
}

void add_driver_name(CLI::App& command, std::string& name) {
  add_checked(command, "--dra-driver-name", name, check_driver_name, "Name of the claim driver")
      ->envname("NEURON_AGENT_DRA_DRIVER_NAME")
      ->type_name("NAME")
      ->default_str(name);
}

CLI::Option* add_checked(CLI::App& command, const std::string& flag, std::string& value,
                         std::function<Result<void>(const std::string&)> check, const std::string& help) {
  return command.add_option_function<std::string>(
      flag,
      [&value, flag, check = std::move(check)](const std::string& text) {
        if (const auto checked = check(text); !checked) throw CLI::ValidationError(flag, checked.error().message);
        value = text;
      },
      help);
}

Result<void> refuse_text(std::string_view text, const char* what) {
  return fail(ErrorCode::invalid_argument, "\"" + printable(text) + "\" " + what);
}

}  // namespace neuron::agent
