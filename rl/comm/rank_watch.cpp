#include "rl/comm/rank_watch.h"

#include <algorithm>
#include <cstddef>

namespace rl {
namespace {

std::string seconds(std::chrono::steady_clock::duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
}

}  // namespace

RankWatch::RankWatch(int ranks, std::chrono::milliseconds patience, Time begun)
    : ranks_(static_cast<std::size_t>(ranks)), patience_(patience) {
  for (Rank& rank : ranks_) rank.heard = rank.progressed = begun;
}

void RankWatch::heard(int rank, const Pulse& pulse, Time now) {
  Rank& known = ranks_[static_cast<std::size_t>(rank)];
  known.heard = now;
  if (known.answered && known.last == pulse) return;
  known.answered = true;
  known.last = pulse;
  known.progressed = now;
}

void RankWatch::finished(int rank) { ranks_[static_cast<std::size_t>(rank)].finished = true; }

std::string RankWatch::waits_of_others() const {
  for (const Rank& rank : ranks_) {
    if (!rank.finished && rank.last.waiting)
      return "; rank " + std::to_string(&rank - ranks_.data()) + " waits in " + rank.last.where;
  }
  return {};
}

std::optional<HeldUp> RankWatch::judge(Time now) const {
  const Rank* behind = nullptr;
  bool all_wait = true, all_in_one = true;
  for (const Rank& rank : ranks_) {
    const int number = static_cast<int>(&rank - ranks_.data());
    if (rank.finished) continue;
    if (now - rank.heard > patience_) {
      return HeldUp{number, "does not answer for " + seconds(now - rank.heard) +
                                (rank.last.where.empty() ? "" : "; it was in " + rank.last.where) +
                                waits_of_others()};
    }
  }
  const bool one_waits = std::ranges::any_of(ranks_, [&](const Rank& rank) {
    return !rank.finished && rank.last.waiting && now - rank.progressed > patience_;
  });
  for (const Rank& rank : ranks_) {
    if (rank.finished) continue;
    const bool still = now - rank.progressed > patience_;
    if (!rank.last.waiting && still && one_waits) {
      return HeldUp{static_cast<int>(&rank - ranks_.data()),
                    "makes no progress for " + seconds(now - rank.progressed) +
                        (rank.last.where.empty() ? "" : " after " + rank.last.where)};
    }
    all_wait = all_wait && rank.last.waiting && still;
    all_in_one =
        all_in_one && (behind == nullptr || rank.last.operations == behind->last.operations);
    if (behind == nullptr || rank.last.operations < behind->last.operations) behind = &rank;
  }
  if (!all_wait || behind == nullptr) return std::nullopt;
  return HeldUp{static_cast<int>(behind - ranks_.data()),
                "waits in " + behind->last.where + " (operation " +
                    std::to_string(behind->last.operations) + ") while all others wait as well: " +
                    (all_in_one ? "nothing arrives" : "the ranks do not make the same calls")};
}

}  // namespace rl
