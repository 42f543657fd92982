// Links between ranks of one machine by memory that they share.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "rl/comm/links.h"
#include "runtime/core/result.h"

namespace rl {

struct SharedMemoryOptions {
  std::chrono::milliseconds deadline{};  // an exchange without progress for that long fails
  /// What one rank may have sent to another that it does not receive yet; the same on all ranks.
  /// That much memory is in use on the way from each rank to each other that is sent to.
  std::size_t ring_bytes = std::size_t{1} << 20;
  /// Parts of more than half of that are read where they are (process_vm_readv), in one copy, if
  /// the system lets the receiver.
  bool reads_peers = true;
};

/// Links whose parts for ranks of this machine go through shared memory, and all others through
/// `links`. Shared memory takes two copies. A socket on loopback takes four and a system call for
/// each piece. All ranks call it; they tell one another of their memory through `links`. Whom
/// memory can't be shared with (another machine, container or user) is linked as before. The memory
/// has no name, and goes with the processes. Errors: those of Exchange::wait.
runtime::Result<std::unique_ptr<Links>> share_memory(std::unique_ptr<Links> links,
                                                     const SharedMemoryOptions& options);

}  // namespace rl
