#pragma once

#include "agent/core/resource.h"

namespace neuron::plugin {

using core::kAllResources;
using core::parse_resource;
using core::Resource;
using core::resource_name;
using core::short_name;

}  // namespace neuron::plugin
