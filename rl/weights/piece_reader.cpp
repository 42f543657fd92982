#include "rl/weights/piece_reader.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/core/thread.h"

namespace rl {

using runtime::Status;

namespace {

// No exception may leave a helper thread.
Status guarded_read(const std::function<Status(std::size_t)>& read, std::size_t piece) {
  try {
    return read(piece);
  } catch (const std::exception& error) {
    return runtime::resource_exhausted(std::string("reading a piece of a file: ") + error.what());
  }
}

}  // namespace

Status read_pieces(std::size_t count, std::size_t helpers,
                   const std::function<Status(std::size_t)>& read) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  Status first_error;
  const auto read_next = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      Status status = guarded_read(read, i);
      if (status.ok()) continue;
      std::lock_guard lock(mutex);
      if (first_error.ok()) first_error = std::move(status);
    }
  };
  {
    const runtime::HelperThreads reading(std::min(helpers, count), read_next);
    read_next();
  }
  return first_error;
}

}  // namespace rl
