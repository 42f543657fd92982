#include "rl/rollout/engine_step.h"

#include <algorithm>
#include <string>

#include "rl/model/forward.h"
#include "rl/model/transformer.h"
#include "rl/profile/recorder.h"
#include "rl/rollout/aten_sampler.h"
#include "rl/rollout/logits_processor.h"

namespace rl {
namespace {

// Rows of logits held at a time while a prompt is scored.
constexpr std::size_t kScoredRows = 64;

std::span<const float> rows_of(const at::Tensor& on_host) {
  return {on_host.const_data_ptr<float>(), static_cast<std::size_t>(on_host.numel())};
}

bool contains(std::span<const std::int32_t> ids, std::int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

void EngineStep::run(std::uint64_t weight_version) {
  weight_version_ = weight_version;
  const profile::Span span("engine step");
  const std::vector<ScheduledTokens> parts = scheduler_.schedule();
  if (parts.empty()) return;
  std::vector<StepSequence> inputs;
  inputs.reserve(parts.size());
  for (const ScheduledTokens& part : parts) {
    const Sequence& sequence = *part.sequence;
    inputs.push_back({.tokens = std::span(sequence.tokens)
                                    .subspan(static_cast<std::size_t>(sequence.computed),
                                             static_cast<std::size_t>(part.count)),
                      .blocks = sequence.blocks,
                      .first_position = sequence.computed,
                      .length_max = sequence.length_max});
  }
  decoder_.forward(inputs);
  ++stats_.steps;
  stats_.blocks_peak = std::max(
      stats_.blocks_peak, cache_.blocks() - cache_.free_blocks() - cache_.idle_cached_blocks());

  std::vector<Choice> choices;
  std::int64_t row = 0;
  for (const ScheduledTokens& part : parts) {
    Sequence& sequence = *part.sequence;
    if (sequence.reads_prompt_rows) score_prompt(part, row);
    stats_.prompt_tokens += sequence.pending() > 1 || sequence.generated() == 0 ? part.count : 0;
    sequence.computed += part.count;
    row += part.count;
    if (prefixes_ != nullptr)
      prefixes_->publish(sequence.stretch, sequence.tokens, sequence.computed, sequence.blocks,
                         sequence.place);
    if (sequence.pending() > 0) continue;
    sequence.reads_prompt_rows = false;
    choices.push_back({&sequence, row - 1});
    for (Sequence* sibling : sequence.siblings) choices.push_back({sibling, row - 1});
    start_siblings(sequence);
  }
  choose(choices);
}

// Log-probs of the prompt's tokens that follow the rows of `part`.
void EngineStep::score_prompt(const ScheduledTokens& part, std::int64_t first_row) {
  const Sequence& sequence = *part.sequence;
  const std::int64_t top = sequence.request->sampling.prompt_top_logprobs;
  Completion& completion = *sequence.completion;
  std::vector<float>& scores = completion.prompt_logprobs;
  scores.resize(static_cast<std::size_t>(sequence.computed));  // again from here after a preemption
  if (top > 0) completion.prompt_top_logprobs.resize(scores.size());
  const auto vocab = static_cast<std::size_t>(setting_.model.config().vocab_size);
  const std::int64_t end = std::min(sequence.computed + part.count, sequence.prompt_tokens() - 1);
  for (std::int64_t begin = sequence.computed; begin < end;
       begin += static_cast<std::int64_t>(kScoredRows)) {
    std::vector<std::int64_t> rows;
    std::vector<std::int32_t> targets;
    for (std::int64_t position = begin; position < end && rows.size() < kScoredRows; ++position) {
      rows.push_back(first_row + position - sequence.computed);
      targets.push_back(sequence.tokens[static_cast<std::size_t>(position + 1)]);
    }
    const at::Tensor logits = decoder_.logits(rows);
    const at::Tensor scored = forward::row_logprobs({pool_, decoder_.pass_options()}, logits,
                                                    targets, 1.0F, /*with_entropy=*/false)
                                  .logprob.cpu();
    scores.insert(scores.end(), scored.const_data_ptr<float>(),
                  scored.const_data_ptr<float>() + scored.numel());
    if (top == 0) continue;
    const at::Tensor on_host = logits.cpu();
    for (std::size_t i = 0; i < rows.size(); ++i)
      completion.prompt_top_logprobs.push_back(
          top_scores(pool_, rows_of(on_host).subspan(i * vocab, vocab), 1.0F, top));
  }
}

// The prompt is read: its other samples take its blocks and get in line.
void EngineStep::start_siblings(Sequence& sequence) {
  for (Sequence* sibling : sequence.siblings) {
    sibling->blocks = sequence.blocks;
    for (std::int32_t block : sibling->blocks) cache_.retain(block);
    sibling->computed = sequence.computed;
    sibling->place = sequence.place;
    sibling->completion->prompt_logprobs = sequence.completion->prompt_logprobs;
    sibling->completion->prompt_top_logprobs = sequence.completion->prompt_top_logprobs;
    sibling->completion->cached_prompt_tokens = sequence.completion->cached_prompt_tokens;
    scheduler_.add(sibling);
  }
  sequence.siblings.clear();
}

void EngineStep::choose(std::span<const Choice> choices) {
  std::vector<Choice> chosen;
  std::vector<std::int64_t> rows;  // samples of one prompt share a row of logits
  for (const Choice& choice : choices) {
    if (choice.sequence->request->sampling.max_new_tokens == 0) {
      RunningRequest& running = requests_.of(*choice.sequence);
      if (running.request.sampling.beam.width > 0)
        requests_.finish_all(running, FinishReason::kLength);
      else
        requests_.finish(*choice.sequence, FinishReason::kLength);
      continue;
    }
    chosen.push_back(choice);
    if (rows.empty() || rows.back() != choice.row) rows.push_back(choice.row);
  }
  if (rows.empty()) return;

  const at::Tensor logits = decoder_.logits(rows);
  at::Tensor on_host;  // where it is asked for
  const auto host_row = [&](std::int64_t at) {
    if (!on_host.defined()) on_host = logits.cpu();
    const auto vocab = static_cast<std::size_t>(on_host.size(1));
    return rows_of(on_host).subspan(static_cast<std::size_t>(at) * vocab, vocab);
  };
  std::vector<Sequence*> sampled;
  std::vector<SampleRow> samples;
  std::vector<std::int64_t> logit_rows;
  std::vector<std::vector<std::int32_t>> forbidden(chosen.size());
  std::int64_t at = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    Sequence& sequence = *chosen[i].sequence;
    while (rows[static_cast<std::size_t>(at)] != chosen[i].row) ++at;
    if (sequence.request == nullptr) continue;  // another beam of its request ended it
    const SamplingParams& params = sequence.request->sampling;
    if (params.beam.width > 0) {
      beams_.collect(sequence, host_row(at), weight_version_);
      continue;
    }
    forbidden[i] = forbidden_ids(params, setting_.end_ids, sequence.tokens, sequence.generated());
    sampled.push_back(&sequence);
    logit_rows.push_back(at);
    samples.push_back({.params = &params,
                       .logits = {},
                       .history = sequence.tokens,
                       .forbidden = forbidden[i],
                       .generated = sequence.generated(),
                       .sample = static_cast<std::uint64_t>(sequence.completion->sample),
                       .position = static_cast<std::uint64_t>(sequence.length())});
  }
  std::vector<SampledToken> tokens = sample(samples, logit_rows, logits, host_row);
  for (std::size_t i = 0; i < sampled.size(); ++i) append(*sampled[i], std::move(tokens[i]));
}

// Where the logits are, unless the engine is deterministic or a row asks for more than is done
// there.
std::vector<SampledToken> EngineStep::sample(
    std::span<SampleRow> rows, std::span<const std::int64_t> logit_rows, const at::Tensor& logits,
    const std::function<std::span<const float>(std::int64_t)>& host_row) {
  const profile::Span span("sample tokens");
  const bool there = !decoder_.deterministic() &&
                     std::all_of(rows.begin(), rows.end(),
                                 [](const SampleRow& row) { return fits_aten_sampler(row); });
  if (there) return sample_by_aten(logits, logit_rows, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].logits = host_row(logit_rows[i]);
  std::vector<SampledToken> tokens(rows.size());
  sample_tokens(pool_, rows, tokens);
  return tokens;
}

void EngineStep::append(Sequence& sequence, SampledToken token) {
  if (token.id < 0) {
    return requests_.finish(
        sequence, FinishReason::kError,
        runtime::task_failed(
            "request: no token can be chosen at position " + std::to_string(sequence.length()) +
            ": the logits are not finite (did training diverge? go back to an earlier checkpoint, "
            "with a lower learning rate), or every token is forbidden"));
  }
  const SamplingParams& params = sequence.request->sampling;
  Completion& completion = *sequence.completion;
  sequence.tokens.push_back(token.id);
  completion.ids.push_back(token.id);
  completion.logprobs.push_back(token.logprob);
  if (params.top_logprobs > 0) completion.top_logprobs.push_back(std::move(token.top));
  if (params.processed_logprobs) {
    completion.processed_logprobs.push_back(token.processed_logprob);
    if (params.top_logprobs > 0)
      completion.top_processed_logprobs.push_back(std::move(token.top_processed));
  }
  stamp_version(completion, weight_version_);
  ++stats_.generated_tokens;
  const RunningRequest& running = requests_.of(sequence);
  if (running.progress != nullptr) ++running.progress->generated_tokens;

  const bool may_stop = sequence.generated() >= params.min_new_tokens;
  bool stops = contains(params.stop_ids, token.id) ||
               (!params.ignore_eos && contains(setting_.end_ids, token.id));
  const bool full =
      sequence.generated() >= params.max_new_tokens || sequence.length() >= setting_.context_max();
  if (sequence.text != nullptr) {
    if (sequence.text->push(token.id, may_stop)) stops = true;
    if ((stops || full) && sequence.text->finish(may_stop)) stops = true;
  }
  if (running.streams) {
    new_tokens_.push_back({.request = completion.request,
                           .sample = completion.sample,
                           .id = token.id,
                           .logprob = token.logprob,
                           .last = stops || full});
    if (sequence.text != nullptr && params.text)
      new_tokens_.back().text = sequence.text->take_new();
  }
  if (stops || full)
    requests_.finish(sequence, stops ? FinishReason::kStop : FinishReason::kLength);
}

}  // namespace rl
