// The short form of tests/rl/rollout_long.
#include "random_requests.h"

namespace rl {
namespace {

TEST(EngineRandom, RecomputesAndKeepsPrefixes) {
  testing::survive_random_requests(300, 1,
                                   {.cache = {.bytes_max = 14},
                                    .sequences_max = 9,
                                    .step_tokens_max = 37,
                                    .prefix_caching = PrefixCaching::kKeep});
}

TEST(EngineRandom, SwapsByPriority) {
  testing::survive_random_requests(300, 2,
                                   {.cache = {.bytes_max = 12},
                                    .sequences_max = 6,
                                    .step_tokens_max = 64,
                                    .policy = SchedulingPolicy::kPriority,
                                    .preemption = Preemption::kSwap});
}

TEST(EngineRandom, TakesTheLongestFirstWithoutAPrefixCache) {
  testing::survive_random_requests(300, 3,
                                   {.cache = {.bytes_max = 10},
                                    .policy = SchedulingPolicy::kLongestFirst,
                                    .preemption = Preemption::kSwap,
                                    .swap_bytes_max = 200000,
                                    .prefix_caching = PrefixCaching::kOff});
}

}  // namespace
}  // namespace rl
