#pragma once

#include <string>
#include <string_view>

#include "agent/base/result.h"
#include "tools/kubectl-neuron/documents.h"

namespace neuron::fleet {

// A page of a list: what is kept of it, and where the next begins. Passive data.
struct Page {
  std::string text;  // {"items":[…]}
  std::string next;  // for `continue`; "" on the last page
  std::size_t items = 0;
};

// The page in `body`, an API server's answer, with the fields that commands read, and no others: environment variables,
// annotations, volumes and managed fields of pods are in no document and no dump. Pure. Errors: data_corrupt.
[[nodiscard]] Result<Page> kept_page(Kind kind, std::string_view body);

}  // namespace neuron::fleet
