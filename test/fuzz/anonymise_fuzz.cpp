// A capture of any machine: made anonymous twice it is the same as once, and as many entries as before.

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tools/neuron-gather/capture.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// Where what is replaced stands, and where it may stand besides.
constexpr std::array<std::string_view, 8> kPaths = {
    "sys/class/neuron_device/neuron0/info/serial_number", "sys/class/neuron_device/neuron1/info/serial_number",
    "sys/devices/virtual/dmi/id/board_asset_tag",         "sys/class/infiniband/rdmap16s27/node_guid",
    "sys/class/infiniband/rdmap16s27/sys_image_guid",     "sys/class/infiniband/rdmap16s27/ports/1/gids/0",
    "sys/class/neuron_device/neuron0/ultraserver_id_4",   "neuron-ioctl/neuron0.json"};

}  // namespace

// Files are separated by zero bytes; the first byte of each says where it stands.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  neuron::gather::Capture capture;
  while (!text.empty()) {
    const std::string_view file = text.substr(1, text.find('\0', 1) - 1);
    capture.add_file(kPaths.at(static_cast<unsigned char>(text.front()) % kPaths.size()), std::string(file));
    text.remove_prefix(std::min(text.size(), file.size() + 2));
  }
  const auto before = capture.entries().size();
  neuron::gather::anonymise(capture);
  require(capture.entries().size() == before);
  const auto once = capture.entries();
  neuron::gather::anonymise(capture);
  require(capture.entries() == once);
  return 0;
}
