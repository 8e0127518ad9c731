# Headers that most files include, parsed once per group of targets that compile with the same flags. A file still includes
# what it uses: the presets `plain`, `tidy` and `fuzz` are built without (NEURON_PCH=OFF), and fail otherwise.
# Only headers that add nothing to an object that does not use them: not <iostream>, CLI11 or gRPC, which have objects with
# constructors.
option(NEURON_PCH "Precompile the headers that most files include (GCC only)" ON)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU OR CMAKE_CXX_CLANG_TIDY)
  set(NEURON_PCH OFF)
endif()

set(neuron_standard_headers
    <algorithm> <array> <chrono> <cstdint> <filesystem> <functional> <map> <memory> <optional> <set> <span> <string>
    <string_view> <tuple> <utility> <variant> <vector> <tl/expected.hpp>)

# neuron_precompile(GROUP LINK target... HEADERS header...): makes the group, which is compiled as its users are.
function(neuron_precompile group)
  if(NOT NEURON_PCH)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "LINK;HEADERS" ${ARGN})
  set(source ${PROJECT_BINARY_DIR}/generated/precompiled_${group}.cpp)
  if(NOT EXISTS ${source})
    file(WRITE ${source} "")
  endif()
  add_library(neuron_precompiled_${group} OBJECT ${source})
  target_link_libraries(neuron_precompiled_${group} PRIVATE ${arg_LINK})
  target_precompile_headers(neuron_precompiled_${group} PRIVATE ${neuron_standard_headers} ${arg_HEADERS})
  target_compile_options(neuron_precompiled_${group} PRIVATE -fpch-preprocess)
endfunction()

# neuron_use_precompiled(TARGET GROUP). -fpch-preprocess lets ccache see which precompiled header went in. GCC forgets which
# precompiled code is the system's, and warns of bounds within std::string; the preset `plain` keeps those warnings.
function(neuron_use_precompiled target group)
  if(NEURON_PCH)
    target_precompile_headers(${target} REUSE_FROM neuron_precompiled_${group})
    target_compile_options(${target} PRIVATE -fpch-preprocess -Wno-array-bounds
      $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow$<SEMICOLON>-Wno-stringop-overread>)
  endif()
endfunction()

neuron_precompile(shipped LINK neuron_settings neuron_shipped tl::expected)
neuron_precompile(hot LINK neuron_settings neuron_shipped neuron_hot tl::expected)
# For targets that link spdlog, whose definitions are part of what is precompiled.
neuron_precompile(logging LINK neuron_settings neuron_shipped tl::expected spdlog::spdlog fmt::fmt
                  HEADERS <fmt/format.h> <spdlog/spdlog.h>)
if(BUILD_TESTING)
  neuron_precompile(test LINK neuron_settings neuron_tests tl::expected GTest::gmock
                    HEADERS <cstdlib> <fstream> <gmock/gmock.h> <gtest/gtest.h>)
endif()
