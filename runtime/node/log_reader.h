// Reading a node's logs from afar.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/core/result.h"
#include "runtime/control/control.h"

namespace runtime {

/// Up to 256 KiB of the log `name` in `folder` from `offset`; "" is the node's own log. An empty text means that there is no
/// more (yet). Errors: kNotFound, kInvalidArgument (a name that is not one of a log).
Result<control::LogChunk> read_log_chunk(const std::filesystem::path& folder, const std::string& name, std::uint64_t offset);

}  // namespace runtime
