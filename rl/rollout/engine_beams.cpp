#include "rl/rollout/engine_beams.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "rl/kernel/softmax.h"
#include "rl/rollout/logits_processor.h"
#include "rl/rollout/sampler.h"

namespace rl {

// Scored as transformers does: processors see log-probabilities rather than logits.
void EngineBeams::collect(Sequence& sequence, std::span<const float> logits,
                          std::uint64_t weight_version) {
  RunningRequest& running = requests_.of(sequence);
  const SamplingParams& params = running.request.sampling;
  const auto vocab = static_cast<std::int64_t>(logits.size());
  float normalizer = 0;
  kernel::log_softmax_gather(pool_, logits.data(), 1, vocab, 0, 1.0F, nullptr,
                             {.log_normalizer = &normalizer});
  if (!std::isfinite(normalizer)) {
    return requests_.finish_all(
        running, FinishReason::kError,
        runtime::task_failed("request: no token can be chosen at position " +
                             std::to_string(sequence.length()) + ": the logits are not finite"));
  }
  const std::vector<std::int32_t> forbidden =
      forbidden_ids(params, setting_.end_ids, sequence.tokens, sequence.generated());
  const LogitsContext context{.params = &params,
                              .history = sequence.tokens,
                              .generated = sequence.generated(),
                              .forbidden = forbidden};
  std::vector<float> processed;
  std::span<const float> ranked = logits;
  const bool changed = context.changes_logits();
  if (changed) {
    std::vector<float> scores(logits.begin(), logits.end());
    for (float& score : scores) score -= normalizer;
    process_logits(context, scores, processed);
    ranked = processed;
  }
  std::vector<BeamCandidate>& candidates = running.candidates[sequence.beam];
  candidates.clear();
  for (const std::int32_t id : top_ids(ranked, running.beams->candidates_per_beam())) {
    BeamCandidate candidate{.beam = sequence.beam, .id = id};
    kernel::log_softmax_gather(pool_, logits.data(), 1, vocab, 0, 1.0F, &id,
                               {.logprob = &candidate.logprob});
    candidate.score = changed ? processed[static_cast<std::size_t>(id)] : candidate.logprob;
    candidates.push_back(candidate);
  }
  sequence.held = true;
  const bool all = std::none_of(running.candidates.begin(), running.candidates.end(),
                                [](const auto& known) { return known.empty(); });
  if (all) advance(running, weight_version);
}

void EngineBeams::advance(RunningRequest& running, std::uint64_t weight_version) {
  std::vector<BeamCandidate> candidates;
  for (const std::vector<BeamCandidate>& of_beam : running.candidates)
    candidates.insert(candidates.end(), of_beam.begin(), of_beam.end());
  const std::size_t before = running.candidates.size();
  const std::int64_t taken = running.beams->advance(std::move(candidates));
  running.beam_versions.push_back(weight_version);
  stats_.generated_tokens += taken;
  if (running.progress != nullptr) running.progress->generated_tokens += taken;
  if (running.beams->live().empty()) return finish(running);
  move(running, before);
  running.candidates.assign(running.beams->live().size(), {});
}

// The sequences become the beams that continue, each with the blocks of the one it comes from.
void EngineBeams::move(RunningRequest& running, std::size_t before) {
  struct Computed {
    std::vector<std::int32_t> blocks;
    std::int64_t tokens;
    PrefixCache::Place place;
  };
  const std::vector<Beam>& live = running.beams->live();
  std::vector<Computed> computed;
  for (const Beam& beam : live) {
    const Sequence& parent = *running.sequences[beam.parent];
    for (const std::int32_t block : parent.blocks) cache_.retain(block);
    computed.push_back({.blocks = parent.blocks, .tokens = parent.computed, .place = parent.place});
  }
  for (std::size_t i = 0; i < before; ++i) {
    if (i < live.size())
      scheduler_.drop_blocks(*running.sequences[i]);
    else
      scheduler_.remove(running.sequences[i].get());
  }
  for (std::size_t i = 0; i < live.size(); ++i) {
    Sequence& sequence = *running.sequences[i];
    sequence.tokens = running.request.prompt_ids;
    sequence.tokens.insert(sequence.tokens.end(), live[i].ids.begin(), live[i].ids.end());
    sequence.blocks = std::move(computed[i].blocks);
    sequence.computed = computed[i].tokens;
    sequence.place = computed[i].place;
    sequence.held = false;
    if (i >= before) scheduler_.add(&sequence);
  }
}

void EngineBeams::finish(RunningRequest& running) {
  const std::vector<Beam>& found = running.beams->hypotheses();
  const runtime::Status none =
      runtime::internal_error("request: beam search found no hypothesis: every token is forbidden");
  const Completion first = running.completions.front();  // holds what is known of the prompt
  for (std::size_t i = 0; i < running.completions.size(); ++i) {
    Completion& completion = running.completions[i];
    completion.prompt_logprobs = first.prompt_logprobs;
    completion.prompt_top_logprobs = first.prompt_top_logprobs;
    completion.cached_prompt_tokens = first.cached_prompt_tokens;
    if (i >= found.size()) {
      completion.finish_reason = FinishReason::kError;
      completion.status = none;
      continue;
    }
    completion.ids = found[i].ids;
    completion.logprobs = found[i].logprobs;
    completion.beam_score = found[i].score;
    completion.finish_reason = found[i].reason;
    for (std::size_t token = 0; token < completion.ids.size(); ++token)
      stamp_version(completion, running.beam_versions[token]);
    const SamplingParams& params = running.request.sampling;
    if (params.text)
      completion.text =
          setting_.options.tokenizer->decode(completion.ids, params.skip_special_tokens);
  }
  for (const std::unique_ptr<Sequence>& sequence : running.sequences) {
    scheduler_.remove(sequence.get());
    sequence->request = nullptr;
  }
  if (running.progress != nullptr) running.progress->finished += running.completions.size();
  requests_.deliver(running);
}

}  // namespace rl
