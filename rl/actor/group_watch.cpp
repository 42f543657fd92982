#include "rl/actor/group_watch.h"

#include <algorithm>

#include "rl/comm/rank_watch.h"

namespace rl {

std::chrono::milliseconds watch_period(std::chrono::milliseconds patience) {
  using std::chrono::milliseconds;
  return std::clamp(patience / 6, milliseconds(100), milliseconds(5000));
}

runtime::Status watch_group(const GroupCall& call, std::chrono::milliseconds patience,
                            const std::string& key) {
  const std::chrono::milliseconds period = watch_period(patience);
  RankWatch watch(static_cast<int>(call.ranks), patience, call.now());
  while (!call.wait(period)) {
    std::vector<bool> asked = call.finished();
    asked.flip();
    const std::vector<std::optional<Pulse>> pulses = call.ask(asked, period);
    const auto now = call.now();
    for (std::size_t rank = 0; rank < call.ranks; ++rank) {
      if (!asked[rank])
        watch.finished(static_cast<int>(rank));
      else if (pulses[rank])
        watch.heard(static_cast<int>(rank), *pulses[rank], now);
    }
    const std::optional<HeldUp> held = watch.judge(now);
    if (!held) continue;
    const std::string why = call.role + " rank " + std::to_string(held->rank) + " of " +
                            std::to_string(call.ranks) + " blocks the run: it " + held->reason +
                            ". The limit is " + key + " seconds";
    call.abort(why);
    return runtime::deadline_exceeded(why);
  }
  return {};
}

}  // namespace rl
