#include "tools/neuron-agent/withdraw.h"

#include <CLI/CLI.hpp>

#include "agent/kube/api.h"
#include "agent/kube/api_client.h"
#include "agent/status/node_object.h"
#include "tools/neuron-agent/api_options.h"

namespace neuron::agent {

void add_withdraw_options(CLI::App& command, WithdrawOptions& options) {
  command.add_option("--node-name", options.node_name, "The node whose labels and conditions are removed")
      ->envname("NODE_NAME")
      ->type_name("NAME")
      ->required();
  add_api_options(command, options.api);
}

Result<void> withdraw_node_status(const WithdrawOptions& options) {
  if (auto name = kube::check_node_name(options.node_name); !name) {
    return fail(std::move(name).error().with_context("--node-name"));
  }
  TRY_ASSIGN(kube::ApiPlaces places, kube::api_places(options.api, kube::in_cluster_places()));
  kube::ApiClient client(std::move(places));
  return status::withdraw(client, options.node_name);
}

}  // namespace neuron::agent
