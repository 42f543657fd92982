// A check of SQLite's write-ahead log for damage in its midst, which SQLite does not report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "runtime/core/status.h"

namespace runtime {

/// SQLite reads a log up to the first frame whose checksum is wrong, and takes that for the end: a
/// write that a crash tore. But each transaction is synced before the next one is written. So where
/// more of this log follows the transaction of the wrong frame, that transaction had been written
/// whole. What comes behind it had been acknowledged. `log`: the file's bytes; empty is fine.
/// Errors: kInvalidArgument, with the number of the frame.
Status check_write_ahead_log(std::string_view log);
/// Bytes of a last frame that is not whole: a crash tore it, or the file was shortened.
std::size_t torn_bytes(std::string_view log);
/// Of a file, if there is one; a torn end is told to the program's log. Errors: kInvalidArgument
/// with its name, kUnavailable when it cannot be read.
Status check_write_ahead_log_of(const std::filesystem::path& database);

}  // namespace runtime
