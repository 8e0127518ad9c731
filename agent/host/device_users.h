#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/host/fs_root.h"

namespace neuron::host {

// A process that has a Neuron device open in a way that attaches it (docs/reference/driver.md#opening-a-device): for
// reading, or for reading and writing, as the Neuron runtime does. Opens for writing only, such as our own, and for the
// path only are none. Passive data.
struct DeviceUser {
  int device = 0;  // N of neuron<N>
  int pid = 0;     // as the root's proc/ counts
  int file = 0;    // the lowest descriptor that has it open
  friend auto operator<=>(const DeviceUser&, const DeviceUser&) = default;
};

struct DeviceUsers {
  std::vector<DeviceUser> users;  // by device, then pid; one entry for each pair
  std::string gap;                // why there may be more than these; "" = all processes were read
  friend bool operator==(const DeviceUsers&, const DeviceUsers&) = default;
};

// Bounds of a search; beyond them there is a gap. All processes are read as long as there is time: a thousand with
// forty files each take about 150 ms.
struct DeviceUserBounds {
  std::size_t files_each = 1024;         // the lowest descriptors of each process
  std::chrono::milliseconds time{2000};  // looked at between two processes
};

// Users of the devices, from proc/<pid>/fd and fdinfo: without the driver, hence without attaching to a device. It
// shows neither cores nor memory. A forked child that still has the file counts; a process that closed it and keeps
// only a mapping does not. Processes that end meanwhile are no error.
//
// The text of the link names the device: dev/neuron<N>, " (deleted)" or not. On a live machine whose proc/devices names
// the driver it has to be a character device of that driver, and its minor number is N, since a container may give a
// device or a file any name.
//
// Errors: failed_precondition (proc/ is of a container: its pids are not the host's); permission_denied, not_found (the
// links of pid 1 may not be read, or it is not shown: then little more than the own processes is visible). Any thread;
// blocks on reads of proc/ only, never in the driver.
[[nodiscard]] Result<DeviceUsers> find_device_users(const FsRoot& root, const DeviceUserBounds& bounds = {});

}  // namespace neuron::host
