#include "runtime/head/restart_pace.h"

#include <algorithm>

namespace runtime {

std::chrono::milliseconds RestartPace::next_delay(ActorId actor, bool moves) {
  const HeadOptions& options = context_.options;
  const Deadline now = context_.now();
  Pace& pace = paces_[actor];
  const bool first = pace.placed == Deadline::min();
  const bool calm = first || moves || now - pace.placed >= options.restart_calm;
  pace.short_lived = calm ? 0 : pace.short_lived + 1;
  std::chrono::milliseconds delay{0};
  if (pace.short_lived > 0) {
    delay = options.restart_delay_first * (1u << std::min(pace.short_lived - 1, 20u));
    delay = std::min(delay, options.restart_delay_max);
  }
  pace.placed = now + delay;
  return delay;
}

}  // namespace runtime
