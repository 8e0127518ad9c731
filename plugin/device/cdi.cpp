#include "plugin/device/cdi.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace neuron::plugin {
namespace {

using nlohmann::ordered_json;

std::string file_name(std::string kind) {
  std::replace(kind.begin(), kind.end(), '/', '-');
  return kind + ".json";
}

Result<void> replace_file(const std::string& path, const std::string& text) {
  if (text.empty()) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail(error_from_errno(errno, "removing " + path));
    return {};
  }
  std::ostringstream old;
  old << std::ifstream(path).rdbuf();
  if (old.str() == text) return {};
  const std::string fresh = path + ".new";  // runtimes load only *.json and *.yaml
  std::ofstream out(fresh, std::ios::trunc);
  out << text;
  out.close();
  if (!out) return fail(ErrorCode::internal, "writing " + fresh + ": is the directory writable, is there space?");
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return fail(error_from_errno(errno, "renaming to " + path));
  return {};
}

}  // namespace

std::string cdi_spec(const NodeView& view, model::Resource resource, const ResponseOptions& options) {
  const bool efa = resource == model::Resource::efa;
  ordered_json devices = ordered_json::array();
  for (const int unit : view.units(resource)) {
    const ContainerAnswer answer =
        efa ? answer_for_efa(view, {unit}, options) : answer_for_silicon(view, {unit}, {}, options);
    ordered_json nodes = ordered_json::array();
    for (const auto& node : answer.device_nodes) {
      nodes.push_back({{"path", node.container_path}, {"hostPath", node.host_path}, {"permissions", "rw"}});
    }
    if (nodes.empty()) continue;  // an EFA without a verbs node: nothing to give
    devices.push_back({{"name", view.id_of(resource, unit)}, {"containerEdits", {{"deviceNodes", nodes}}}});
  }
  if (devices.empty()) return "";
  const ordered_json spec = {
      {"cdiVersion", "0.5.0"}, {"kind", efa ? kCdiEfaKind : kCdiNeuronKind}, {"devices", devices}};
  return spec.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<void> write_cdi_specs(const NodeView& view, const ResponseOptions& options, const std::string& directory) {
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) return fail(error_from_errno(errno, directory));
  TRY(replace_file(directory + "/" + file_name(kCdiNeuronKind), cdi_spec(view, model::Resource::neuron, options)));
  TRY(replace_file(directory + "/" + file_name(kCdiEfaKind), cdi_spec(view, model::Resource::efa, options)));
  return {};
}

}  // namespace neuron::plugin
