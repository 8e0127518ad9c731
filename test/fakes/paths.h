#pragma once

#include <string>

namespace neuron::fakes {

// Absolute paths of this checkout and build. paths.cpp alone is compiled with them, so that the compiler cache serves
// the other tests' objects in every checkout.
[[nodiscard]] std::string source_dir();
[[nodiscard]] std::string bin_dir();    // of the programs
[[nodiscard]] std::string faulty_io();  // the library of test/fakes/faulty_io.h

}  // namespace neuron::fakes
