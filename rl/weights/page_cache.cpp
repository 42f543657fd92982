#include "rl/weights/page_cache.h"

#include <fcntl.h>

namespace rl {

bool set_past_cache(int fd, bool past) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, past ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

bool is_past_cache(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_DIRECT) != 0;
}

DirectBlock allocate_direct_block(std::size_t bytes) {
  constexpr std::size_t kAlignment =
      4096;  // what O_DIRECT asks of memory, offsets and sizes on every disk
  return DirectBlock(static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes)));
}

}  // namespace rl
