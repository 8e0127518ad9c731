#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace neuron::test {

// What is wrong with `document` by `schema`, as "/devices/0/bdf: ..."; "" when nothing is. Knows the keywords that
// docs/schema uses: type, properties, required, additionalProperties, items, enum, const, anyOf, pattern, minimum and
// $ref into #/$defs; any other keyword that constrains is itself a complaint.
[[nodiscard]] std::string schema_violation(const nlohmann::json& schema, const nlohmann::json& document);

// What is wrong with a text by docs/schema/NAME.json, also as JSON; "" when nothing is.
[[nodiscard]] std::string schema_file_violation(const std::string& name, const std::string& text);

// The text as JSON: one document by RFC 8259 and nothing else, no key twice in an object. nullopt otherwise.
[[nodiscard]] std::optional<nlohmann::json> parse_strictly(const std::string& text);

}  // namespace neuron::test
