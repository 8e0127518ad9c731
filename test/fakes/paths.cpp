#include "test/fakes/paths.h"

namespace neuron::fakes {

std::string source_dir() {
  return NEURON_SOURCE_DIR;
}
std::string bin_dir() {
  return NEURON_BIN_DIR;
}
std::string faulty_io() {
  return NEURON_FAULTY_IO;
}

}  // namespace neuron::fakes
