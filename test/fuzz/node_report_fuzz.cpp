// What another process may answer as a node's document. Its report has the same JSON when it is read again.

#include <cstdlib>
#include <string_view>

#include "agent/report/node_report.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  namespace report = neuron::report;
  const auto read = report::parse_node_report({reinterpret_cast<const char*>(data), size});
  if (!read) {
    require(read.error().code == neuron::ErrorCode::data_corrupt && !read.error().message.empty());
    return 0;
  }
  const auto& host = read->host;
  require(read->core_ids.size() == host.devices.size() && read->near_efas.size() == host.devices.size());
  require(read->physical_cores.size() == host.devices.size() && read->pci_keys.size() == host.devices.size());
  const std::string text = report::node_report_json(*read, report::JsonLayout::one_line);
  const auto again = report::parse_node_report(text);
  require(again && report::node_report_json(*again, report::JsonLayout::one_line) == text);
  static_cast<void>(report::node_report_json(report::only_devices(*read, {0, 3}), report::JsonLayout::indented));
  return 0;
}
