#include "rl/rollout/request.h"

#include <cmath>
#include <string>

#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr float kTemperatureMin = 1e-4F;
constexpr std::int64_t kTopLogprobsMax = 128;
constexpr std::int64_t kBeamsMax = 256;

runtime::Status bad(const std::string& what) {
  return runtime::invalid_argument("sampling: " + what);
}

runtime::Status at_least_zero(const char* name, std::int64_t value) {
  return value >= 0 ? runtime::Status()
                    : bad(std::string(name) + " is " + std::to_string(value) + "; at least 0");
}

runtime::Status finite(const char* name, float value) {
  return std::isfinite(value)
             ? runtime::Status()
             : bad(std::string(name) + " is " + std::to_string(value) + "; a finite number");
}

runtime::Status top_count(const char* name, std::int64_t value) {
  if (value >= 0 && value <= kTopLogprobsMax) return {};
  return bad(std::string(name) + " is " + std::to_string(value) + "; from 0 to " +
             std::to_string(kTopLogprobsMax));
}

runtime::Status check_words(const SamplingParams& params) {
  for (const std::string& stop : params.stop_strings) {
    if (stop.empty()) return bad("stop_strings holds an empty text");
  }
  for (const std::vector<std::int32_t>& word : params.bad_words) {
    if (word.empty()) return bad("bad_words holds an empty sequence");
  }
  for (const LogitBias& bias : params.logit_bias) {
    if (!std::isfinite(bias.bias))
      return bad("logit_bias of token " + std::to_string(bias.id) + " is " +
                 std::to_string(bias.bias) + "; a finite number (bad_words forbids)");
  }
  return {};
}

runtime::Status check_beam(const SamplingParams& params) {
  const BeamSearchParams& beam = params.beam;
  if (beam.width < 0 || beam.width > kBeamsMax)
    return bad("beam.width is " + std::to_string(beam.width) + "; from 0 (none) to " +
               std::to_string(kBeamsMax));
  if (!std::isfinite(beam.length_penalty))
    return bad("beam.length_penalty is " + std::to_string(beam.length_penalty) +
               "; a finite number");
  if (beam.width == 0) return {};
  if (!params.stop_strings.empty())
    return bad("stop_strings do not go with beam.width " + std::to_string(beam.width) +
               "; stop_ids do");
  if (params.top_logprobs > 0)
    return bad("top_logprobs does not go with beam.width " + std::to_string(beam.width));
  if (params.processed_logprobs)
    return bad("processed_logprobs does not go with beam.width " + std::to_string(beam.width));
  return {};
}

}  // namespace

runtime::Status SamplingParams::validate() const {
  if (temperature != 0.0F && !(temperature >= kTemperatureMin && std::isfinite(temperature))) {
    return bad("temperature is " + std::to_string(temperature) + "; 0 (greedy) or at least 0.0001");
  }
  if (!(top_p > 0.0F && top_p <= 1.0F))
    return bad("top_p is " + std::to_string(top_p) + "; above 0 and at most 1");
  if (!(min_p >= 0.0F && min_p <= 1.0F))
    return bad("min_p is " + std::to_string(min_p) + "; from 0 to 1");
  if (!(repetition_penalty > 0.0F && std::isfinite(repetition_penalty)))
    return bad("repetition_penalty is " + std::to_string(repetition_penalty) + "; above 0");
  if (!(first_temperature >= 0.0F && std::isfinite(first_temperature)))
    return bad("first_temperature is " + std::to_string(first_temperature) +
               "; 0 (as the others) or above");
  if (first_top_k < 0)
    return bad("first_top_k is " + std::to_string(first_top_k) +
               "; a number of tokens, or 0 for all");
  if (top_k < -1)
    return bad("top_k is " + std::to_string(top_k) + "; a number of tokens, or 0 or -1 for all");
  for (const runtime::Status& status :
       {finite("presence_penalty", presence_penalty),
        finite("frequency_penalty", frequency_penalty),
        at_least_zero("max_new_tokens", max_new_tokens),
        at_least_zero("min_new_tokens", min_new_tokens), top_count("top_logprobs", top_logprobs),
        top_count("prompt_top_logprobs", prompt_top_logprobs), check_words(*this),
        check_beam(*this)}) {
    if (!status.ok()) return status;
  }
  if (min_new_tokens > max_new_tokens) {
    return bad("min_new_tokens " + std::to_string(min_new_tokens) + " exceeds max_new_tokens " +
               std::to_string(max_new_tokens));
  }
  return {};
}

const char* to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kAborted: return "aborted";
    case FinishReason::kError: break;
  }
  return "error";
}

std::uint64_t Completion::weight_version(std::size_t i) const {
  CHECK(i < ids.size());
  auto rest = static_cast<std::int64_t>(i);
  for (const VersionRun& run : weight_versions) {
    if (rest < run.tokens) return run.version;
    rest -= run.tokens;
  }
  return 0;
}

}  // namespace rl
