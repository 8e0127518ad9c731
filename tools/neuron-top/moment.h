#pragma once

#include <string>
#include <vector>

#include "agent/base/workers.h"
#include "agent/core/pool_names.h"
#include "agent/core/usage_rates.h"
#include "agent/model/allocation.h"
#include "agent/model/host_scan.h"
#include "agent/model/usage.h"

namespace neuron::top {

// Everything that was read of a machine up to one moment. Passive, comparable.
struct Moment {
  model::HostScan scan;                 // assessed (agent/health/assess.h)
  model::UsageSample sample;            // the newest
  core::UsageRates rates;               // since the sample before
  std::vector<model::Allocation> pods;  // empty also when nobody asked
  std::string no_pods;  // why the kubelet could not tell, in a few words; "not asked for" without --pods; "" = told
  std::string claim_driver{core::kDefaultDriverName};  // whose claims are shown
};

using Sampler = BackgroundReader<Moment, model::UsageRequest>;

}  // namespace neuron::top
