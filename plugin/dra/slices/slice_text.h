#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "plugin/dra/slices/slice.h"

// ResourceSlices as JSON of resource.k8s.io/v1, both ways. What is read is foreign and of any size up to the client's
// bound; what we do not write ourselves is not kept, but makes Slice::is_ours false. Pure.
namespace neuron::plugin::dra {

// One object, as POST and PUT take it.
[[nodiscard]] std::string slice_json(const Slice& slice);
// A v1 List of objects, as `kubectl apply -f` takes it; indented.
[[nodiscard]] std::string slice_list_json(const std::vector<Slice>& slices);

// One object as GET, POST and PUT answer it. Errors: data_corrupt (no JSON object with a name, or another kind).
[[nodiscard]] Result<Slice> parse_slice(std::string_view text);

struct SliceList {
  std::string resource_version;
  std::string continue_token;  // "" = the last page
  std::vector<Slice> slices;
};
// Errors: data_corrupt (no list, an item without a name, more than 512 items).
[[nodiscard]] Result<SliceList> parse_slice_list(std::string_view text);

// Of Kubernetes' quantities what a 64-bit whole number can hold: "8", "96Gi", "2k", "1e3", "4000m"; else nullopt.
[[nodiscard]] std::optional<std::int64_t> parse_quantity(std::string_view text);
// "96Gi" where it is a whole number of the greatest binary unit, else decimal digits.
[[nodiscard]] std::string quantity_text(std::int64_t value);

}  // namespace neuron::plugin::dra
