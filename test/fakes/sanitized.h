#pragma once

namespace neuron::fakes {

// Built with a sanitizer. Its shadow of the memory, and what it keeps of what was freed, count as memory of the process: several
// times what the program itself has. A test that measures memory says what it makes of it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace neuron::fakes
