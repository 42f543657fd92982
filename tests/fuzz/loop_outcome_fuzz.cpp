// Messages of a process with a user's agent loops, with any content: a sample whose parts fit
// together, or a failure.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "rl/agent/custom_loops.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto message =
      nlohmann::ordered_json::parse(std::string_view(reinterpret_cast<const char*>(data), size),
                                    nullptr, /*allow_exceptions=*/false);
  if (!message.is_object()) return 0;
  (void)rl::asked_sampling({}, message);
  const rl::LoopOutcome outcome = rl::read_outcome(message);
  if (outcome.failure != rl::ScoreFailure::kNone) {
    if (outcome.why.empty()) std::abort();
    return 0;
  }
  const rl::GeneratedTurn turn{outcome.prompt_ids, outcome.response_ids,
                               std::vector<float>(outcome.response_ids.size(), -1.0F), true, 0};
  const auto sample = rl::sample_of(outcome, {&turn, 1}, 8);
  if (sample.ok() &&
      (sample->ids.size() != sample->mask.size() || sample->logprobs.size() > sample->ids.size()))
    std::abort();
  return 0;
}
