#include "tools/neuron-agent/api_options.h"

#include <CLI/CLI.hpp>

namespace neuron::agent {

void add_api_options(CLI::App& command, kube::ApiFlags& api) {
  command
      .add_option("--api-server", api.server, "The API server, https://HOST:PORT (default:\nthat of the pod's cluster)")
      ->envname("NEURON_AGENT_API_SERVER")
      ->type_name("URL");
  command
      .add_option("--api-token-file", api.token_file,
                  "File with the token for the API server\n(default: of the pod's service account)")
      ->envname("NEURON_AGENT_API_TOKEN_FILE")
      ->type_name("FILE");
  command
      .add_option("--api-ca-file", api.ca_file,
                  "File with the CA certificates of the API server\n(default: of the pod's service account)")
      ->envname("NEURON_AGENT_API_CA_FILE")
      ->type_name("FILE");
}

Result<void> check_api_options(const kube::ApiFlags& api) {
  if (api.server.empty()) return {};
  auto places = kube::api_places(api, {});
  if (!places && places.error().code == ErrorCode::invalid_argument) return fail(std::move(places).error());
  return {};
}

std::vector<std::string> describe_api(const kube::ApiFlags& api) {
  const auto or_pods = [](const std::string& text) { return text.empty() ? "in-cluster" : text; };
  return {"api-server=" + or_pods(api.server), "api-token-file=" + or_pods(api.token_file),
          "api-ca-file=" + or_pods(api.ca_file)};
}

}  // namespace neuron::agent
