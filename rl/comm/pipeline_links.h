// PipelineLinks: the messages between the stages of a pipeline while several passes are in flight.
#pragma once

#include <atomic>
#include <memory>

#include "rl/comm/peer_messages.h"

namespace rl {

/// Both between the same ranks, the stages in their order.
struct PipelineLinks {
  std::unique_ptr<PeerMessages> stages;  // rows and gradients
  /// Outputs and their gradients, between the last stage and the one whose rows they are of: there
  /// by its own thread.
  std::unique_ptr<PeerMessages> losses;
  mutable std::atomic<bool> computes_loss{false};  // that thread does now

  void abort(const runtime::Status& why) const {
    stages->abort(why);
    losses->abort(why);
  }
};

}  // namespace rl
