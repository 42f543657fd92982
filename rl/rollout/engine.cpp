#include "rl/rollout/engine.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <string>

#include "rl/kernel/softmax.h"
#include "rl/model/quantized_weights.h"
#include "rl/model/transformer.h"
#include "rl/rollout/decoder.h"
#include "rl/rollout/sampler.h"
#include "rl/rollout/scheduler.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

// Rows of logits held at a time while a prompt is scored.
constexpr std::size_t kScoredRows = 64;

bool contains(std::span<const std::int32_t> ids, std::int32_t id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

}  // namespace

class Engine::Impl {
 public:
  Impl(const Transformer& model, const EngineOptions& options, std::unique_ptr<KvCache> cache, std::unique_ptr<QuantizedWeights> quantized)
      : model_(model),
        pool_(model.pool()),
        options_(options),
        cache_(std::move(cache)),
        quantized_(std::move(quantized)),
        decoder_(model, *cache_, quantized_.get()),
        scheduler_(*cache_, {.sequences_max = options.sequences_max, .step_tokens_max = options.step_tokens_max}) {}

  runtime::Result<std::vector<Completion>> generate(std::span<const Request> requests, const OnStep& on_step);

  const EngineStats& stats() const { return stats_; }
  const KvCache& cache() const { return *cache_; }
  void refresh_weights() {
    if (quantized_) quantized_->refresh(pool_);
  }
  std::int64_t copied_weight_bytes() const { return quantized_ ? quantized_->bytes() : 0; }

 private:
  // A row of the step whose logits choose a token for `sequence`.
  struct Choice {
    Sequence* sequence;
    std::int64_t row;
  };

  runtime::Status validate(const Request& request) const;
  std::int64_t context_max() const;
  void admit(std::span<const Request> requests);
  void step();
  void score_prompt(const ScheduledTokens& part, std::int64_t first_row);
  void start_siblings(Sequence& sequence);
  void choose(std::span<const Choice> choices);
  void append(Sequence& sequence, const SampledToken& token);
  void finish(Sequence& sequence, FinishReason reason, runtime::Status status = {});
  void abort_all();

  const Transformer& model_;
  kernel::ThreadPool& pool_;
  EngineOptions options_;
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<QuantizedWeights> quantized_;  // null: fp32
  Decoder decoder_;
  Scheduler scheduler_;
  EngineStats stats_;

  // Of the generate() that runs.
  std::vector<Completion> completions_;
  std::vector<std::unique_ptr<Sequence>> sequences_;  // one per completion that was admitted
  EngineProgress progress_;
};

std::int64_t Engine::Impl::context_max() const {
  const std::int64_t model_max = model_.config().max_position_embeddings;
  return options_.context_max > 0 ? std::min(options_.context_max, model_max) : model_max;
}

runtime::Status Engine::Impl::validate(const Request& request) const {
  const auto length = static_cast<std::int64_t>(request.prompt_ids.size());
  if (length == 0) return runtime::invalid_argument("request: the prompt is empty");
  if (request.n < 1) return runtime::invalid_argument("request: n is " + std::to_string(request.n) + "; at least 1");
  for (std::int32_t id : request.prompt_ids) {
    if (id < 0 || id >= model_.config().vocab_size) {
      return runtime::invalid_argument("request: token id " + std::to_string(id) + " is outside the vocabulary of " +
                                       std::to_string(model_.config().vocab_size));
    }
  }
  if (runtime::Status status = request.sampling.validate(); !status.ok()) return status;
  const std::int64_t room = context_max() - (request.sampling.max_new_tokens > 0 ? 1 : 0);
  if (length > room) {
    return runtime::invalid_argument("request: the prompt has " + std::to_string(length) + " tokens, the context holds " +
                                     std::to_string(context_max()));
  }
  const std::int64_t longest = std::min(context_max(), length + request.sampling.max_new_tokens);
  const std::int64_t blocks = (longest + cache_->block_tokens() - 1) / cache_->block_tokens();
  if (blocks > cache_->blocks()) {
    return runtime::resource_exhausted("request: " + std::to_string(longest) + " tokens take " + std::to_string(blocks) +
                                       " cache blocks, there are " + std::to_string(cache_->blocks()) + "; raise the cache's bytes_max");
  }
  return {};
}

void Engine::Impl::admit(std::span<const Request> requests) {
  std::size_t total = 0;
  for (const Request& request : requests) total += static_cast<std::size_t>(std::max<std::int64_t>(request.n, 1));
  completions_.assign(total, {});  // never resized again: sequences point into it
  sequences_.clear();
  progress_ = {.total = total};
  std::size_t next = 0;
  for (std::size_t r = 0; r < requests.size(); ++r) {
    const Request& request = requests[r];
    const runtime::Status status = validate(request);
    Sequence* leader = nullptr;
    for (std::int64_t sample = 0; sample < std::max<std::int64_t>(request.n, 1); ++sample) {
      Completion& completion = completions_[next];
      completion.request = r;
      completion.sample = sample;
      const auto order = static_cast<std::uint64_t>(next++);
      if (!status.ok()) {
        completion.finish_reason = FinishReason::kError;
        completion.status = status;
        ++progress_.finished;
        continue;
      }
      sequences_.push_back(std::make_unique<Sequence>());
      Sequence* sequence = sequences_.back().get();
      sequence->request = &request;
      sequence->completion = &completion;
      sequence->order = order;
      sequence->tokens = request.prompt_ids;
      if (leader == nullptr) {
        leader = sequence;
        scheduler_.add(sequence);
      } else {
        leader->siblings.push_back(sequence);
      }
    }
  }
}

runtime::Result<std::vector<Completion>> Engine::Impl::generate(std::span<const Request> requests, const OnStep& on_step) {
  try {
    admit(requests);
    while (!scheduler_.idle()) {
      step();
      if (on_step && !on_step(progress_)) break;
    }
  } catch (const std::bad_alloc&) {
    abort_all();
    return runtime::resource_exhausted("rollout: out of memory; lower sequences_max or step_tokens_max");
  }
  abort_all();
  return std::move(completions_);
}

void Engine::Impl::step() {
  const std::vector<ScheduledTokens> parts = scheduler_.schedule();
  std::vector<StepSequence> inputs;
  inputs.reserve(parts.size());
  for (const ScheduledTokens& part : parts) {
    const Sequence& sequence = *part.sequence;
    inputs.push_back({.tokens = std::span(sequence.tokens).subspan(static_cast<std::size_t>(sequence.computed), static_cast<std::size_t>(part.count)),
                      .blocks = sequence.blocks,
                      .first_position = sequence.computed,
                      .length_max = std::min(context_max(), sequence.prompt_tokens() + sequence.request->sampling.max_new_tokens)});
  }
  decoder_.forward(inputs);
  ++stats_.steps;
  stats_.blocks_peak = std::max(stats_.blocks_peak, cache_->blocks() - cache_->free_blocks());
  stats_.preemptions = scheduler_.preemptions();

  std::vector<Choice> choices;
  std::int64_t row = 0;
  for (const ScheduledTokens& part : parts) {
    Sequence& sequence = *part.sequence;
    const bool reads_prompt = sequence.generated() == 0;
    if (reads_prompt && sequence.request->sampling.prompt_logprobs) score_prompt(part, row);
    stats_.prompt_tokens += sequence.pending() > 1 || reads_prompt ? part.count : 0;
    sequence.computed += part.count;
    row += part.count;
    if (sequence.pending() > 0) continue;
    choices.push_back({&sequence, row - 1});
    for (Sequence* sibling : sequence.siblings) choices.push_back({sibling, row - 1});
    start_siblings(sequence);
  }
  choose(choices);
}

// Log-probs of the prompt's tokens that follow the rows of `part`.
void Engine::Impl::score_prompt(const ScheduledTokens& part, std::int64_t first_row) {
  const Sequence& sequence = *part.sequence;
  std::vector<float>& scores = sequence.completion->prompt_logprobs;
  scores.resize(static_cast<std::size_t>(std::max<std::int64_t>(sequence.computed, 0)));  // again from here after a preemption
  const std::int64_t end = std::min(sequence.computed + part.count, sequence.prompt_tokens() - 1);
  for (std::int64_t begin = sequence.computed; begin < end; begin += static_cast<std::int64_t>(kScoredRows)) {
    std::vector<std::int64_t> rows;
    std::vector<std::int32_t> targets;
    for (std::int64_t position = begin; position < end && rows.size() < kScoredRows; ++position) {
      rows.push_back(first_row + position - sequence.computed);
      targets.push_back(sequence.tokens[static_cast<std::size_t>(position + 1)]);
    }
    const std::span<const float> logits = decoder_.logits(rows);
    const std::size_t before = scores.size();
    scores.resize(before + rows.size());
    const kernel::LogSoftmaxOutputs outputs{.logprob = scores.data() + before};
    kernel::log_softmax_gather(pool_, logits.data(), static_cast<std::int64_t>(rows.size()), model_.config().vocab_size, 0, 1.0F,
                               targets.data(), outputs);
  }
}

// The prompt is read: its other samples take its blocks and get in line.
void Engine::Impl::start_siblings(Sequence& sequence) {
  for (Sequence* sibling : sequence.siblings) {
    sibling->blocks = sequence.blocks;
    for (std::int32_t block : sibling->blocks) cache_->retain(block);
    sibling->computed = sequence.computed;
    sibling->completion->prompt_logprobs = sequence.completion->prompt_logprobs;
    scheduler_.add(sibling);
  }
  sequence.siblings.clear();
}

void Engine::Impl::choose(std::span<const Choice> choices) {
  std::vector<Choice> sampled;
  std::vector<std::int64_t> rows;  // samples of one prompt share a row of logits
  for (const Choice& choice : choices) {
    if (choice.sequence->request->sampling.max_new_tokens == 0) {
      finish(*choice.sequence, FinishReason::kLength);
      continue;
    }
    sampled.push_back(choice);
    if (rows.empty() || rows.back() != choice.row) rows.push_back(choice.row);
  }
  if (rows.empty()) return;

  const std::span<const float> logits = decoder_.logits(rows);
  const auto vocab = static_cast<std::size_t>(model_.config().vocab_size);
  std::vector<SampleRow> samples;
  std::vector<std::vector<std::int32_t>> forbidden(sampled.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < sampled.size(); ++i) {
    const Sequence& sequence = *sampled[i].sequence;
    const SamplingParams& params = sequence.request->sampling;
    while (rows[at] != sampled[i].row) ++at;
    if (sequence.generated() < params.min_new_tokens) {
      forbidden[i] = params.stop_ids;
      if (!params.ignore_eos) forbidden[i].insert(forbidden[i].end(), model_.config().eos_ids.begin(), model_.config().eos_ids.end());
    }
    samples.push_back({.params = &params,
                       .logits = logits.subspan(at * vocab, vocab),
                       .history = sequence.tokens,
                       .forbidden = forbidden[i],
                       .sample = static_cast<std::uint64_t>(sequence.completion->sample),
                       .position = static_cast<std::uint64_t>(sequence.length())});
  }
  std::vector<SampledToken> tokens(samples.size());
  sample_tokens(pool_, samples, tokens);
  for (std::size_t i = 0; i < sampled.size(); ++i) append(*sampled[i].sequence, tokens[i]);
}

void Engine::Impl::append(Sequence& sequence, const SampledToken& token) {
  if (token.id < 0) {
    return finish(sequence, FinishReason::kError,
                  runtime::internal_error("request " + std::to_string(sequence.completion->request) + ": logits at position " +
                                          std::to_string(sequence.length() - 1) + " are not finite"));
  }
  sequence.tokens.push_back(token.id);
  sequence.completion->ids.push_back(token.id);
  sequence.completion->logprobs.push_back(token.logprob);
  ++stats_.generated_tokens;
  ++progress_.generated_tokens;
  const SamplingParams& params = sequence.request->sampling;
  if (contains(params.stop_ids, token.id) || (!params.ignore_eos && contains(model_.config().eos_ids, token.id))) {
    finish(sequence, FinishReason::kStop);
  } else if (sequence.generated() >= params.max_new_tokens || sequence.length() >= context_max()) {
    finish(sequence, FinishReason::kLength);
  }
}

void Engine::Impl::finish(Sequence& sequence, FinishReason reason, runtime::Status status) {
  sequence.completion->finish_reason = reason;
  sequence.completion->status = std::move(status);
  scheduler_.remove(&sequence);
  sequence.request = nullptr;  // marks it finished
  ++progress_.finished;
}

void Engine::Impl::abort_all() {
  for (const std::unique_ptr<Sequence>& sequence : sequences_) {
    if (sequence->request != nullptr) finish(*sequence, FinishReason::kAborted);
  }
  sequences_.clear();
  CHECK(cache_->free_blocks() == cache_->blocks());
}

runtime::Result<std::unique_ptr<Engine>> Engine::create(const Transformer& model, const EngineOptions& options) {
  if (options.sequences_max < 1 || options.step_tokens_max < 1) {
    return runtime::invalid_argument("engine: sequences_max and step_tokens_max must be at least 1");
  }
  if (!model.parameters().arena().device().is_cpu()) return runtime::unimplemented("the rollout engine runs on the CPU; the model is on another device");
  const ModelConfig& config = model.config();
  if (config.task != ModelTask::kCausalLm) return runtime::invalid_argument("the model is a classifier: it has no output layer over the vocabulary to generate with");
  auto cache = KvCache::create({.layers = config.layers, .width = config.kv_size()}, options.cache);
  if (!cache.ok()) return cache.status();
  std::unique_ptr<QuantizedWeights> quantized;
  if (options.weights == EngineWeights::kInt8) {
    auto created = QuantizedWeights::create(config, model.parameters());
    if (!created.ok()) return created.status();
    quantized = std::move(*created);
    quantized->refresh(model.pool());
  }
  return std::unique_ptr<Engine>(new Engine(std::make_unique<Impl>(model, options, std::move(*cache), std::move(quantized))));
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Engine::~Engine() = default;

runtime::Result<std::vector<Completion>> Engine::generate(std::span<const Request> requests, const OnStep& on_step) {
  return impl_->generate(requests, on_step);
}

void Engine::refresh_weights() { impl_->refresh_weights(); }

std::int64_t Engine::copied_weight_bytes() const { return impl_->copied_weight_bytes(); }

const EngineStats& Engine::stats() const { return impl_->stats(); }

const KvCache& Engine::cache() const { return impl_->cache(); }

}  // namespace rl
