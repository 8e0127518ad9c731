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

# For what computes: the choice of units, parsing, the text of a scrape. The rest waits for files and calls and is no slower
# at the preset's -O1 (docs/performance.md), which builds in two thirds of the time.
add_library(neuron_hot INTERFACE)
target_compile_options(neuron_hot INTERFACE $<$<CONFIG:RelWithDebInfo>:-O2>)

# At its default of 128 MB the compiler spends up to a tenth of its time on collecting its own garbage.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(--param=ggc-min-heapsize=524288)  # KB
endif()

# A test's own code, which is built often and runs for seconds: optimised it takes twice as long to build. What it tests is
# optimised as it is shipped.
add_library(neuron_tests INTERFACE)
target_compile_options(neuron_tests INTERFACE $<$<CONFIG:RelWithDebInfo>:-O0 -U_FORTIFY_SOURCE>)

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
