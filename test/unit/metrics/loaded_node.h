#pragma once

#include <string>

#include "agent/metrics/exposition.h"

namespace neuron::test {

// What a scrape is made of, without files and clocks.
//
// A sound node of a catalogue type that is as busy as it can be: every counter known and moving, every core and every
// interface held by a container of its own, every figure of the agent there. `lnc`: physical cores per logical core.
[[nodiscard]] metrics::MetricsInput loaded_node(const std::string& instance_type, int lnc);

// The same node with nothing running, holders and figures left out.
[[nodiscard]] metrics::MetricsInput idle_node(const std::string& instance_type);

// An input may be changed before it is used: these make copies of what it points to.
[[nodiscard]] model::HostScan& host_of(metrics::MetricsInput& input);
[[nodiscard]] model::UsageSample& usage_of(metrics::MetricsInput& input);
[[nodiscard]] std::vector<holdings::Holding>& holdings_of(metrics::MetricsInput& input);

}  // namespace neuron::test
