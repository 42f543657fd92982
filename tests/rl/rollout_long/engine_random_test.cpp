// 10,000 random requests with aborts, stops, preemptions and pauses in any order: block counts
// return to zero, and outputs equal the same requests run alone.
#include "tests/rl/rollout/random_requests.h"

namespace rl {
namespace {

TEST(EngineRandomLong, RecomputesAndKeepsPrefixes) {
  testing::survive_random_requests(4000, 11,
                                   {.cache = {.bytes_max = 16},
                                    .sequences_max = 12,
                                    .step_tokens_max = 50,
                                    .prefix_caching = PrefixCaching::kKeep});
}

TEST(EngineRandomLong, SwapsByPriority) {
  testing::survive_random_requests(3000, 12,
                                   {.cache = {.bytes_max = 12},
                                    .sequences_max = 6,
                                    .policy = SchedulingPolicy::kPriority,
                                    .preemption = Preemption::kSwap});
}

TEST(EngineRandomLong, TakesTheLongestFirstWithoutAPrefixCache) {
  testing::survive_random_requests(3000, 13,
                                   {.cache = {.bytes_max = 10},
                                    .step_tokens_max = 29,
                                    .policy = SchedulingPolicy::kLongestFirst,
                                    .preemption = Preemption::kSwap,
                                    .swap_bytes_max = 200000,
                                    .prefix_caching = PrefixCaching::kOff});
}

}  // namespace
}  // namespace rl
