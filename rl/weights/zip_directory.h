// The directory of a zip archive whose files are stored, not compressed: where each lies in the
// mapped bytes. PyTorch's files need no more than that, and the packaged libraries do not give it.
// libzip and minizip read through their own handles and buffers. libzip does not tell where a
// file's bytes begin, so that nothing could be used from the mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>

#include "runtime/core/result.h"

namespace rl {

/// The files of an archive by name. Views into the archive's bytes.
using ZipDirectory = std::map<std::string_view, std::span<const std::byte>>;

/// Reads the directory at the end of the archive, zip64 included. Every file lies wholly inside the
/// archive, none overlaps another, no name is there twice, and the header before each file agrees
/// with the directory. `name` is the archive for error messages. Errors: kInvalidArgument (not an
/// archive, truncated, damaged), kUnimplemented (compressed, encrypted or split). Checksums are not
/// compared: that would read the whole archive. Allocates in proportion to the directory's bytes.
runtime::Result<ZipDirectory> read_zip_directory(std::span<const std::byte> archive,
                                                 std::string_view name);

}  // namespace rl
