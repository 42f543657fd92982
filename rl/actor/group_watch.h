// watch_group: a call of all ranks of a group, watched while it goes on.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rl/comm/pulse.h"
#include "runtime/core/result.h"

namespace rl {

/// A call that all ranks of a group are in, as the watch sees it.
struct GroupCall {
  using Time = std::chrono::steady_clock::time_point;

  std::string role;  // "Policy"
  std::size_t ranks = 0;
  /// Waits for the call, but no longer than that: true when all ranks have answered or one has
  /// failed.
  std::function<bool(std::chrono::milliseconds limit)> wait;
  /// By rank: whether it has answered.
  std::function<std::vector<bool>()> finished;
  /// Where these ranks stand, by rank; nothing: it does not say so within the limit, or was not
  /// asked.
  std::function<std::vector<std::optional<Pulse>>(const std::vector<bool>& asked,
                                                  std::chrono::milliseconds limit)>
      ask;
  /// Ends what the ranks do together, on each of them that answers.
  std::function<void(const std::string& why)> abort;
  std::function<Time()> now = &std::chrono::steady_clock::now;
};

/// How often ranks are asked where they stand, so that `patience` is measured well enough.
std::chrono::milliseconds watch_period(std::chrono::milliseconds patience);

/// Returns when all ranks have answered or one has failed. kDeadlineExceeded: a rank holds the
/// others up for longer than `patience` (see RankWatch). The group was aborted, and the message
/// names role, rank, what it last did, and `key`, which sets the patience.
runtime::Status watch_group(const GroupCall& call, std::chrono::milliseconds patience,
                            const std::string& key);

}  // namespace rl
