#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "agent/core/catalogue.h"
#include "tools/neuron-agent/options.h"
#include "tools/neuron-agent/reports.h"

// `catalogue`: what the agent shows on a node of each instance type, without a node. Reads nothing; pure.
namespace neuron::agent {

inline constexpr const char* kCatalogueSchema = "neuron-catalogue/1";  // docs/catalogue.md

struct Catalogue {
  Report report;
  std::vector<std::string> notes;  // for standard error: what is left out, which addresses are made up
};

// Makes the catalogue for settled options. The report's verdict is `cannot_tell` for an unknown type, and for an LNC
// that a named type does not have; without named types it applies to those that have it.
[[nodiscard]] Catalogue catalogue(const Options& options);

// For it, and for tests:

// One document with the facts of the types, in their order.
[[nodiscard]] nlohmann::ordered_json catalogue_json(const std::vector<const core::InstanceType*>& types,
                                                    const Options& options);

// That document as a table for people: a line per type.
[[nodiscard]] std::string catalogue_table(const nlohmann::ordered_json& document);

// Any document as YAML: JSON's scalars, quoted texts, lists of scalars on one line. Foreign bytes that are no UTF-8 are
// replaced.
[[nodiscard]] std::string yaml_of(const nlohmann::ordered_json& document);

}  // namespace neuron::agent
