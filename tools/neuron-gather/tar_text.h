#pragma once

#include <string>
#include <string_view>

#include "agent/base/result.h"
#include "tools/neuron-gather/capture.h"

namespace neuron::gather {

// The capture as a tar archive (ustar, pax headers where a name does not fit) below one folder `top`. The same capture
// always gives the same bytes: sorted by path, owner 0, modes 0755 and 0644, one fixed time. Pure.
[[nodiscard]] std::string tar_text(const Capture& capture, std::string_view top);

// gzip of `text`, without a time stamp. Pure. Errors: internal when zlib refuses.
[[nodiscard]] Result<std::string> gzip_text(std::string_view text);

}  // namespace neuron::gather
