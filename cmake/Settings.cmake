# Warnings and language settings of our own code. Not -Wnull-dereference: at -O2 GCC 12 reports it inside libstdc++ and
# CLI11, at -O0 it reports nothing.
add_library(neuron_settings INTERFACE)
target_compile_features(neuron_settings INTERFACE cxx_std_20)
target_compile_options(
  neuron_settings
  INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual
            $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety> $<$<BOOL:${NEURON_WERROR}>:-Werror>)

# What is installed: nothing in it depends on the directory it was built in, and the linker drops what nobody calls.
add_library(neuron_shipped INTERFACE)
if(NEURON_HARDEN)
  target_compile_options(neuron_shipped INTERFACE -ffunction-sections -fdata-sections
                                                  -ffile-prefix-map=${PROJECT_SOURCE_DIR}=/usr/src/neuron-agent)
  # What position independence adds to the image is a bit per address instead of 24 bytes; needs glibc 2.36 as Debian 12 has.
  target_link_options(neuron_shipped INTERFACE -Wl,--gc-sections -Wl,-z,pack-relative-relocs)
endif()

if(NEURON_SANITIZE)
  add_compile_options(-fsanitize=${NEURON_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${NEURON_SANITIZE})
endif()

if(NEURON_FUZZ)  # coverage from the parsers, not only from the fuzz target
  add_compile_options($<IF:$<CXX_COMPILER_ID:Clang>,-fsanitize=fuzzer-no-link,-fsanitize-coverage=trace-pc$<COMMA>trace-cmp>)
endif()

if(NEURON_HARDEN)
  set(is_module $<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>)  # which CMake itself makes position independent
  add_compile_options(-fstack-protector-strong -D_FORTIFY_SOURCE=2 $<$<NOT:${is_module}>:-fPIE>)
  add_link_options(-Wl,-z,relro,-z,now $<$<NOT:${is_module}>:-pie>)
endif()
