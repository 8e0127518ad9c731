#include "agent/host/ultraserver_files.h"

#include "agent/base/parse.h"

namespace neuron::host {
namespace {

std::string text_of(const FsRoot& root, const std::string& file) {
  const auto text = root.read_attribute("sys/class/neuron_device/" + file);
  return text ? std::string(trim(*text)) : "";
}

std::string first_of(const FsRoot& root, const std::string& file, const std::string& otherwise) {
  std::string text = text_of(root, file);
  return text.empty() ? text_of(root, otherwise) : text;
}

}  // namespace

UltraServerFiles read_ultraserver_files(const FsRoot& root) {
  UltraServerFiles files;
  files.modes = text_of(root, "ultraserver_mode");
  for (const int nodes : {2, 4}) {
    files.server_id[nodes] = first_of(root, "server_id_" + std::to_string(nodes), "reservation_id");
    files.node_id[nodes] = first_of(root, "node_id_" + std::to_string(nodes), "node_id");
  }
  return files;
}

}  // namespace neuron::host
