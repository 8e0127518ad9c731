#pragma once

#include <cstdlib>
#include <string>

namespace neuron::fakes {

// Built with a sanitizer. Its shadow of the memory, and what it keeps of what was freed, count as memory of the
// process: several times what the program itself has. A test that measures memory says what it makes of it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// NAME=VALUE for the environment of a program that loads a library before AddressSanitizer's, which would refuse to
// run.
inline std::string sanitizer_allows_preload() {
  const char* const given = std::getenv("ASAN_OPTIONS");
  return std::string("ASAN_OPTIONS=") + (given != nullptr ? given : "") + ":verify_asan_link_order=0";
}

}  // namespace neuron::fakes
