// Communicator over c10d's Gloo, which libtorch_cpu.so contains.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "rl/comm/communicator.h"
#include "rl/comm/rendezvous.h"
#include "rl/comm/shared_memory_links.h"

namespace rl {

struct GlooOptions {
  int rank = 0;
  int size = 1;
  std::string group =
      "default";  // names the group's keys in the rendezvous; use a fresh one for every group made
  std::string
      host;  // address or name of this machine that the other ranks reach; empty: Gloo picks one
  std::chrono::milliseconds deadline = std::chrono::minutes(10);           // of the rendezvous
  std::chrono::milliseconds exchange_deadline = std::chrono::minutes(10);  // of each exchange
  bool shares_memory = true;  // with the ranks of this machine; see share_memory()
  std::size_t ring_bytes = SharedMemoryOptions().ring_bytes;  // of that memory
  Communicator::Options collectives = {};
};

/// Blocks until all ranks are there. `rendezvous` is shared with what keeps running in the group.
/// kInvalidArgument: a rank outside the group, a host that is not this machine's;
/// kDeadlineExceeded: not all ranks came.
runtime::Result<std::unique_ptr<Communicator>> make_gloo_communicator(
    std::shared_ptr<Rendezvous> rendezvous, const GlooOptions& options);

/// The same links without collectives: for PeerMessages.
runtime::Result<std::unique_ptr<Links>> make_gloo_links(std::shared_ptr<Rendezvous> rendezvous,
                                                        const GlooOptions& options);

}  // namespace rl
