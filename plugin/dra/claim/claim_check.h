#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"

// Claims before there is an allocation: what Prepare would refuse of their configuration, by Prepare's own decoder
// (config_for), and requests for no cores. What depends on the node, the other requests of a container or the
// allocation is not known here.
namespace neuron::plugin::dra {

struct ConfigFault {
  enum class Kind {
    refused,       // Prepare refuses it, whatever request a configuration is for
    other_driver,  // ignored: for another driver, though its parameters are valid for this one
  };
  Kind kind = Kind::refused;
  std::string object;   // "ResourceClaimTemplate default/neurons"
  std::string path;     // "spec.spec.devices.config[1].opaque.parameters"
  std::string value;    // its JSON, printable
  std::string problem;  // of Prepare
  std::string fix;
};

struct CheckedClaims {
  std::size_t objects = 0;  // ResourceClaims, ResourceClaimTemplates and DeviceClasses
  std::size_t configs = 0;  // entries of config[] for the driver
  std::vector<ConfigFault> faults;
};

// `text`: one or more JSON objects one after another, lists of them too, as kubectl prints them. Objects of other kinds
// are skipped. Errors: invalid_argument when the text is no JSON, as YAML is none; data_corrupt when an object is
// nested more than 64 deep. Pure.
[[nodiscard]] Result<CheckedClaims> check_claims(std::string_view text, const std::string& driver);

}  // namespace neuron::plugin::dra
