// Reading a node's logs from afar.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/control/control.h"
#include "runtime/core/result.h"

namespace runtime {

/// Up to 256 KiB of the log `name` in `folder`; "" is the node's own log. `file` and `offset` are
/// what the chunk before said, or 0 and 0 to begin with the oldest that is kept. A log that is
/// rotated meanwhile is read on in its next file. An empty text means that there is no more (yet).
/// The chunk's `position` tells what has been rotated away before it.
/// Errors: kNotFound, kInvalidArgument (a name that is not one of a log).
Result<control::LogChunk> read_log_chunk(const std::filesystem::path& folder,
                                         const std::string& name, std::uint64_t file,
                                         std::uint64_t offset);

}  // namespace runtime
