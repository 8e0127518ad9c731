#pragma once

#include <string>

#include "agent/base/result.h"
#include "tools/neuron-sim/host_plan.h"

namespace neuron::sim {

// Writes the host directory of `plan` (docs/fixtures.md) into `dir`, which is made if absent. A directory that is a
// simulated host already is cleared and written again; links in it are removed, never followed. Character devices
// become real ones that behave like /dev/null where the caller may make them, else regular files. A trn2.48xlarge takes
// under a second.
//
// Errors: invalid_argument (unknown type, with near matches; driver that does not drive the type; missing device out of
// range; LNC the family does not have); failed_precondition (`dir` holds something else); permission_denied, internal
// from the file system. After an error the directory may be half written. One writer per directory at a time.
[[nodiscard]] Result<void> write_host(const HostPlan& plan, const std::string& dir);

// Whether `dir` is a complete host that this version of neuron-sim writes for `plan`. Later faults and loads do not
// count. False for an invalid plan, and for root when plain files stand in place of device nodes (see write_host).
[[nodiscard]] bool is_host_of(const HostPlan& plan, const std::string& dir);

// Whether a device node of the simulated host `dir` is a plain file, because its writer was not permitted to make
// nodes.
[[nodiscard]] bool has_plain_files_for_devices(const std::string& dir);

// The host that write_host would make, in one line: "trn1.32xlarge, driver 2.30.2.0: 16 devices, 8 EFA interfaces".
// Errors: invalid_argument as above. No I/O.
[[nodiscard]] Result<std::string> describe(const HostPlan& plan);

}  // namespace neuron::sim
