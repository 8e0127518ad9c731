# Every library comes from Debian 12. Each search must answer, or the configuration stops here.
find_package(Threads REQUIRED)
find_package(tl-expected REQUIRED)
find_package(Protobuf REQUIRED MODULE)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED HINTS /usr/share/cmake)
find_package(nlohmann_json REQUIRED)
find_package(CURL REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(NCURSESW REQUIRED IMPORTED_TARGET ncursesw)
find_library(NCURSESW_ARCHIVE libncursesw.a REQUIRED)
find_library(TINFO_ARCHIVE libtinfo.a REQUIRED)
find_library(YAML_ARCHIVE libyaml-cpp.a REQUIRED) # for agent/kube/yaml.cpp; no program but neuron-agent has it
pkg_check_modules(LIBFABRIC REQUIRED IMPORTED_TARGET libfabric)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
if(BUILD_TESTING)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# What a program of the property NEURON_STATIC, which needs no shared library, has instead of these or without them: its
# libraries' own code that logs is not linked into it.
set(in_static $<BOOL:$<TARGET_PROPERTY:NEURON_STATIC>>)
find_library(ZLIB z REQUIRED)
find_library(ZLIB_ARCHIVE libz.a REQUIRED)
set(NEURON_ZLIB $<IF:${in_static},${ZLIB_ARCHIVE},${ZLIB}>)
set(NEURON_LOGGING $<$<NOT:${in_static}>:spdlog::spdlog> $<$<NOT:${in_static}>:fmt::fmt>)
