#pragma once

#include "agent/core/pool_names.h"

// The names of devices, which the tools read too, as this folder calls them.
namespace neuron::plugin::dra {

using core::CoreName;
using core::DeviceName;
using core::EfaName;
using core::GroupName;
using core::NodeName;
using core::PoolName;

using core::efa_label;
using core::members_of;
using core::parse_pool_name;
using core::to_string;

}  // namespace neuron::plugin::dra
