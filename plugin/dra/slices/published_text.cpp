#include "plugin/dra/slices/published_text.h"

#include "plugin/dra/slices/slice_text.h"

namespace neuron::plugin::dra {

std::string published_text(const Layout& layout, const PoolIdentity& identity) {
  return slice_list_json(whole_slices(layout.slices, identity));
}

}  // namespace neuron::plugin::dra
