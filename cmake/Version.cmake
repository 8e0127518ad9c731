# The one version: project(VERSION) becomes agent/base/version.h's constant.
configure_file(${PROJECT_SOURCE_DIR}/cmake/version.h.in ${PROJECT_BINARY_DIR}/generated/neuron_version.h @ONLY)
add_library(neuron_version INTERFACE)
add_library(neuron::version ALIAS neuron_version)
target_include_directories(neuron_version INTERFACE ${PROJECT_BINARY_DIR}/generated)
