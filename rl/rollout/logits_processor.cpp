#include "rl/rollout/logits_processor.h"

#include <algorithm>
#include <limits>

namespace rl {
namespace {

// The slot of an id, or null outside the vocabulary.
float* slot(std::vector<float>& logits, std::int32_t id) {
  return id >= 0 && static_cast<std::size_t>(id) < logits.size()
             ? &logits[static_cast<std::size_t>(id)]
             : nullptr;
}

// Each id once, with how often it is there: the result does not depend on the order of additions.
void penalize_presence(const LogitsContext& context, std::vector<float>& out) {
  const SamplingParams& params = *context.params;
  const auto completion = context.history.last(static_cast<std::size_t>(context.generated));
  std::vector<std::int32_t> ids(completion.begin(), completion.end());
  std::sort(ids.begin(), ids.end());
  for (auto begin = ids.begin(); begin != ids.end();) {
    const auto end = std::upper_bound(begin, ids.end(), *begin);
    if (float* logit = slot(out, *begin))
      *logit -=
          params.presence_penalty + params.frequency_penalty * static_cast<float>(end - begin);
    begin = end;
  }
}

}  // namespace

bool LogitsContext::changes_logits() const {
  if (!forbidden.empty() || params->repetition_penalty != 1.0F || !params->logit_bias.empty())
    return true;
  return generated > 0 && (params->presence_penalty != 0.0F || params->frequency_penalty != 0.0F);
}

std::vector<std::int32_t> forbidden_ids(const SamplingParams& params,
                                        std::span<const std::int32_t> eos_ids,
                                        std::span<const std::int32_t> history,
                                        std::int64_t generated) {
  std::vector<std::int32_t> forbidden;
  if (generated < params.min_new_tokens) {
    forbidden = params.stop_ids;
    if (!params.ignore_eos) forbidden.insert(forbidden.end(), eos_ids.begin(), eos_ids.end());
  }
  for (const std::vector<std::int32_t>& word : params.bad_words) {
    const std::size_t before = word.size() - 1;
    if (before <= history.size() && std::equal(word.begin(), word.end() - 1,
                                               history.end() - static_cast<std::ptrdiff_t>(before)))
      forbidden.push_back(word.back());
  }
  return forbidden;
}

void process_logits(const LogitsContext& context, std::span<const float> logits,
                    std::vector<float>& out) {
  const SamplingParams& params = *context.params;
  out.assign(logits.begin(), logits.end());
  if (const float penalty = params.repetition_penalty; penalty != 1.0F) {
    for (std::int32_t id : context.history) {
      float* penalized = slot(out, id);
      if (penalized == nullptr) continue;
      const float logit =
          logits[static_cast<std::size_t>(id)];  // once, however often it is repeated
      *penalized = logit < 0.0F ? logit * penalty : logit / penalty;
    }
  }
  if (context.generated > 0 &&
      (params.presence_penalty != 0.0F || params.frequency_penalty != 0.0F))
    penalize_presence(context, out);
  for (const LogitBias& bias : params.logit_bias) {
    if (float* logit = slot(out, bias.id)) *logit += bias.bias;
  }
  for (std::int32_t id : context.forbidden) {
    if (float* logit = slot(out, id)) *logit = -std::numeric_limits<float>::infinity();
  }
}

}  // namespace rl
