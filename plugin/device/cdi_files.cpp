#include "plugin/device/cdi_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "agent/base/file_text.h"
#include "agent/grant/cdi.h"

namespace neuron::plugin {
namespace {

std::string file_name(std::string kind) {
  std::replace(kind.begin(), kind.end(), '/', '-');
  return kind + ".json";
}

}  // namespace

Result<void> write_cdi_specs(const grant::NodeUnits& node, const grant::GrantOptions& options,
                             const std::string& directory) {
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) return fail(error_from_errno(errno, directory));
  TRY(replace_file(directory + "/" + file_name(grant::kCdiNeuronKind),
                   grant::cdi_spec(node, model::Resource::neuron, options)));
  TRY(replace_file(directory + "/" + file_name(grant::kCdiEfaKind),
                   grant::cdi_spec(node, model::Resource::efa, options)));
  return {};
}

}  // namespace neuron::plugin
