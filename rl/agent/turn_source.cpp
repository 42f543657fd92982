#include "rl/agent/turn_source.h"

#include <utility>

#include "rl/data/random.h"
#include "rl/rollout/engine.h"

namespace rl {

RequestId EngineTurns::submit(Request request) { return engine_.submit(std::move(request)); }
runtime::Status EngineTurns::step() { return engine_.step(); }
std::vector<Completion> EngineTurns::take_finished() { return engine_.take_finished(); }
bool EngineTurns::idle() const { return engine_.idle(); }

std::uint64_t turn_seed(std::uint64_t prompt, std::int64_t sample, std::int64_t turn) {
  const std::uint64_t first = SplitMix(prompt ^ (static_cast<std::uint64_t>(sample) << 32)).next();
  return SplitMix(first ^ static_cast<std::uint64_t>(turn)).next();
}

}  // namespace rl
