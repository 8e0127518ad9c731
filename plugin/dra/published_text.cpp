#include "plugin/dra/published_text.h"

#include "plugin/dra/slice_text.h"

namespace neuron::plugin::dra {

std::string published_text(const Pool& pool, const LayoutOptions& options, const PoolIdentity& identity) {
  return slice_list_json(whole_slices(lay_out(pool, options).slices, identity));
}

}  // namespace neuron::plugin::dra
