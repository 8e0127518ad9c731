#pragma once

#include "tools/neuron-top/moment.h"
#include "tools/neuron-top/options.h"
#include "tools/render/style.h"

namespace neuron::top {

// Prints pictures or JSON objects on stdout until there are as many as asked for, somebody closes the pipe, or
// `signals` (a signalfd of SIGINT, SIGTERM, SIGHUP) becomes readable. Errors: deadline_exceeded when the machine does
// not answer in ten seconds; internal when stdout cannot be written.
[[nodiscard]] Result<void> print_samples(const Options& options, render::Style style, int columns, Sampler& sampler,
                                         int signals);

}  // namespace neuron::top
