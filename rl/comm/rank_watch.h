// RankWatch: finds the rank that holds a group up.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "rl/comm/pulse.h"
#include "runtime/core/result.h"

namespace rl {

/// The rank that the others wait for in vain, and why: "rank 2: no progress for 60 s in layer 3".
struct HeldUp {
  int rank = 0;
  std::string reason;
};

/// Judges ranks by their pulses. A rank that computes is waited for as long as its steps grow. A
/// rank that waits in a collective is never to blame for what it waits for. Pure; times are the
/// caller's.
class RankWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `patience` without a sign of progress is too long.
  RankWatch(int ranks, std::chrono::milliseconds patience, Time begun);

  /// A rank has answered.
  void heard(int rank, const Pulse& pulse, Time now);

  /// A rank has left the call: it isn't waited for any more.
  void finished(int rank);

  /// The rank that holds up the others, if there is one. A rank that does not answer (stopped, or
  /// its machine is away) comes first. Next is a rank that computes without progress while another
  /// waits for it. Where all wait, it is the rank that is behind: the ranks do not make the same
  /// calls.
  std::optional<HeldUp> judge(Time now) const;

 private:
  struct Rank {
    Pulse last;
    Time heard;
    Time progressed;
    bool answered = false;
    bool finished = false;
  };

  std::string waits_of_others() const;

  std::vector<Rank> ranks_;
  std::chrono::milliseconds patience_;
};

}  // namespace rl
