// File access past the page cache: bytes that are not read again soon go between memory and disk
// directly (O_DIRECT), where the file system can.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace rl {

/// Reading and writing `fd` goes past the page cache from now on, or through it again. False: it
/// stays as it was, since the file system has no such thing. A file system may accept this and
/// refuse the first read or write with EINVAL.
bool set_past_cache(int fd, bool past);

bool is_past_cache(int fd);

struct FreeDirectBlock {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using DirectBlock = std::unique_ptr<std::byte, FreeDirectBlock>;

/// Memory that a disk can read and write directly; `bytes` a multiple of 4096. Null: there is none.
DirectBlock allocate_direct_block(std::size_t bytes);

}  // namespace rl
