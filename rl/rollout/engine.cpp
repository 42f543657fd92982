#include "rl/rollout/engine.h"

#include <algorithm>
#include <limits>
#include <new>
#include <string>

#include "rl/model/device.h"
#include "rl/model/guarded.h"
#include "rl/model/transformer.h"
#include "rl/rollout/engine_impl.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr std::int64_t kSamplesMax = 1 << 20;  // of one request

runtime::Status outside_vocabulary(const char* field, std::int32_t id, std::int64_t vocab) {
  return runtime::invalid_argument("request: " + std::string(field) + ": token id " +
                                   std::to_string(id) + " is outside the vocabulary of " +
                                   std::to_string(vocab));
}

std::int64_t draws_of(const Request& request) {
  if (request.sampling.beam.width > 0) return request.n;
  return std::max(request.n, request.best_of);
}

double mean_logprob(const Completion& completion) {
  if (completion.ids.empty() || completion.finish_reason == FinishReason::kError)
    return -std::numeric_limits<double>::infinity();
  double sum = 0;
  for (const float logprob : completion.logprobs) sum += double{logprob};
  return sum / static_cast<double>(completion.logprobs.size());
}

void keep_best(std::vector<Completion>& completions, std::int64_t n) {
  std::stable_sort(
      completions.begin(), completions.end(),
      [](const Completion& a, const Completion& b) { return mean_logprob(a) > mean_logprob(b); });
  completions.resize(static_cast<std::size_t>(n));
}

// What a chat tokenizer ends its turns with may be missing from the config of the base model that
// was given it.
std::vector<std::int32_t> all_end_ids(const ModelConfig& config, const EngineOptions& options) {
  std::vector<std::int32_t> ids = config.eos_ids;
  ids.insert(ids.end(), options.end_ids.begin(), options.end_ids.end());
  if (const auto end = options.tokenizer ? options.tokenizer->eos_id() : std::nullopt)
    ids.push_back(*end);
  std::erase_if(ids, [&config](std::int32_t id) { return id < 0 || id >= config.vocab_size; });
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

Engine::Impl::Impl(const Transformer& model, const EngineOptions& options,
                   std::unique_ptr<KvCache> cache, std::unique_ptr<QuantizedWeights> quantized)
    : model_(model),
      pool_(model.pool()),
      options_(options),
      end_ids_(all_end_ids(model.config(), options)),
      cache_(std::move(cache)),
      prefixes_(options.prefix_caching == PrefixCaching::kOff
                    ? nullptr
                    : std::make_unique<PrefixCache>(*cache_)),
      quantized_(std::move(quantized)),
      decoder_(model, *cache_, quantized_.get(), options.deterministic),
      scheduler_(*cache_,
                 {.sequences_max = options.sequences_max,
                  .step_tokens_max = options.step_tokens_max,
                  .preemption = options.preemption,
                  .swap_bytes_max = options.swap_bytes_max,
                  .urgent_first = options.policy == SchedulingPolicy::kPriority},
                 prefixes_.get()),
      adapter_(model.used_adapter()) {}

Engine::Impl::~Impl() = default;

std::int64_t Engine::Impl::context_max() const {
  const std::int64_t model_max = model_.config().max_position_embeddings;
  return options_.context_max > 0 ? std::min(options_.context_max, model_max) : model_max;
}

runtime::Status Engine::Impl::validate_ids(const Request& request) const {
  const std::int64_t vocab = model_.config().vocab_size;
  const auto outside = [vocab](std::int32_t id) { return id < 0 || id >= vocab; };
  for (const std::int32_t id : request.prompt_ids) {
    if (outside(id)) return outside_vocabulary("prompt_ids", id, vocab);
  }
  for (const LogitBias& bias : request.sampling.logit_bias) {
    if (outside(bias.id)) return outside_vocabulary("logit_bias", bias.id, vocab);
  }
  for (const std::int32_t id : request.sampling.stop_ids) {
    if (outside(id)) return outside_vocabulary("stop_ids", id, vocab);
  }
  for (const std::vector<std::int32_t>& word : request.sampling.bad_words) {
    for (const std::int32_t id : word) {
      if (outside(id)) return outside_vocabulary("bad_words", id, vocab);
    }
  }
  return {};
}

runtime::Status Engine::Impl::validate_begun(const Request& request) const {
  if (request.begun.empty()) return {};
  const SamplingParams& sampling = request.sampling;
  const bool plain = sampling.beam.width == 0 && request.best_of == 0 &&
                     sampling.stop_strings.empty() && !sampling.text &&
                     sampling.top_logprobs == 0 && !sampling.processed_logprobs &&
                     !sampling.prompt_logprobs && sampling.prompt_top_logprobs == 0;
  if (!plain)
    return runtime::invalid_argument(
        "request: begun samples go with ids and their log-probabilities only: no beam search, "
        "best_of, stop strings, text, top, processed or prompt log-probabilities");
  if (static_cast<std::int64_t>(request.begun.size()) != request.n) {
    return runtime::invalid_argument("request: " + std::to_string(request.begun.size()) +
                                     " begun samples, n is " + std::to_string(request.n));
  }
  const std::int64_t room =
      std::min(sampling.max_new_tokens,
               context_max() - static_cast<std::int64_t>(request.prompt_ids.size()));
  for (const BegunSample& sample : request.begun) {
    std::int64_t versioned = 0;
    for (const VersionRun& run : sample.weight_versions) versioned += run.tokens;
    const auto tokens = static_cast<std::int64_t>(sample.ids.size());
    if (sample.logprobs.size() != sample.ids.size() || versioned != tokens)
      return runtime::invalid_argument(
          "request: begun sample: ids, log-probabilities and versions differ in number");
    if (tokens > room || (tokens == room && !sample.finished)) {
      return runtime::invalid_argument("request: begun sample: " + std::to_string(tokens) +
                                       " tokens leave nothing to draw of " + std::to_string(room));
    }
    if (sample.finished && tokens == 0)
      return runtime::invalid_argument("request: begun sample: it has finished without a token");
    for (const std::int32_t id : sample.ids) {
      if (id < 0 || id >= model_.config().vocab_size)
        return outside_vocabulary("begun", id, model_.config().vocab_size);
    }
  }
  return {};
}

runtime::Status Engine::Impl::validate(const Request& request) const {
  const SamplingParams& sampling = request.sampling;
  const auto length = static_cast<std::int64_t>(request.prompt_ids.size());
  if (static_cast<std::int64_t>(requests_.size()) >= options_.requests_max) {
    return runtime::resource_exhausted("request: the engine has " +
                                       std::to_string(requests_.size()) +
                                       " requests; take less at a time or raise requests_max");
  }
  if (length == 0) return runtime::invalid_argument("request: the prompt is empty");
  if (request.n < 1 || request.n > kSamplesMax) {
    return runtime::invalid_argument("request: n is " + std::to_string(request.n) + "; from 1 to " +
                                     std::to_string(kSamplesMax));
  }
  if (request.best_of != 0 && (request.best_of < request.n || request.best_of > kSamplesMax)) {
    return runtime::invalid_argument("request: best_of is " + std::to_string(request.best_of) +
                                     "; 0 (none), or from n, " + std::to_string(request.n) +
                                     ", to " + std::to_string(kSamplesMax));
  }
  if (runtime::Status status = validate_ids(request); !status.ok()) return status;
  if (runtime::Status status = sampling.validate(); !status.ok()) return status;
  if (const std::int64_t width = sampling.beam.width; width > 0) {
    if (request.n > width)
      return runtime::invalid_argument("request: n is " + std::to_string(request.n) +
                                       ", above beam.width " + std::to_string(width));
    if (request.best_of != 0)
      return runtime::invalid_argument("request: best_of does not go with beam.width " +
                                       std::to_string(width) +
                                       "; n of the hypotheses are returned");
    const std::int64_t wanted =
        BeamSearch(sampling.beam, stop_ids(sampling), 1).candidates_per_beam();
    if (wanted > model_.config().vocab_size) {
      return runtime::invalid_argument("request: beam.width " + std::to_string(width) + " takes " +
                                       std::to_string(wanted) + " candidates, the vocabulary has " +
                                       std::to_string(model_.config().vocab_size) + " tokens");
    }
  }
  if (runtime::Status status = validate_begun(request); !status.ok()) return status;
  if (!options_.tokenizer && !sampling.stop_strings.empty())
    return runtime::invalid_argument(
        "request: stop_strings need a tokenizer: EngineOptions::tokenizer");
  if (!options_.tokenizer && sampling.text)
    return runtime::invalid_argument("request: text needs a tokenizer: EngineOptions::tokenizer");
  const std::int64_t room = context_max() - (sampling.max_new_tokens > 0 ? 1 : 0);
  if (length > room) {
    return runtime::invalid_argument("request: the prompt has " + std::to_string(length) +
                                     " tokens, the context holds " + std::to_string(context_max()));
  }
  const std::int64_t longest = length + std::min(context_max() - length, sampling.max_new_tokens);
  const std::int64_t blocks = (longest + cache_->block_tokens() - 1) / cache_->block_tokens();
  if (blocks > cache_->blocks()) {
    return runtime::resource_exhausted("request: " + std::to_string(longest) + " tokens take " +
                                       std::to_string(blocks) + " cache blocks, there are " +
                                       std::to_string(cache_->blocks()) +
                                       "; raise the cache's bytes_max");
  }
  return {};
}

std::int64_t Engine::Impl::rank_of(const Request& request) const {
  switch (options_.policy) {
    case SchedulingPolicy::kFirstCome: break;
    case SchedulingPolicy::kLongestFirst:
      return -(request.predicted_tokens > 0 ? request.predicted_tokens
                                            : request.sampling.max_new_tokens);
    case SchedulingPolicy::kPriority:
      return request.priority == std::numeric_limits<std::int64_t>::min()
                 ? std::numeric_limits<std::int64_t>::max()
                 : -request.priority;
  }
  return 0;
}

RequestId Engine::Impl::submit(Request request, EngineProgress* progress) {
  auto running = std::make_unique<RunningRequest>();
  running->id = next_id_++;
  running->request = std::move(request);
  running->progress = progress;
  const RequestId id = running->id;
  const runtime::Status status = validate(running->request);
  const bool sound = running->request.n >= 1 && running->request.n <= kSamplesMax;
  running->completions.resize(static_cast<std::size_t>(
      !sound        ? 1
      : status.ok() ? draws_of(running->request)
                    : running->request.n));  // never again: sequences point into it
  for (std::size_t i = 0; i < running->completions.size(); ++i) {
    running->completions[i].request = id;
    running->completions[i].sample = static_cast<std::int64_t>(i);
  }
  if (progress != nullptr) progress->total += running->completions.size();
  RunningRequest& kept = *requests_.emplace(id, std::move(running)).first->second;
  if (!status.ok()) {
    finish_all(kept, FinishReason::kError, status);
    done_.clear();
    return id;
  }
  start(kept);
  done_.clear();  // of one whose samples had all finished before
  return id;
}

// Makes the request's sequences.
void Engine::Impl::start(RunningRequest& running) {
  const Request& request = running.request;
  const bool beams = request.sampling.beam.width > 0;
  const auto count =
      static_cast<std::size_t>(beams ? request.sampling.beam.width : draws_of(request));
  const std::int64_t length_max =
      static_cast<std::int64_t>(request.prompt_ids.size()) +
      std::min(context_max() - static_cast<std::int64_t>(request.prompt_ids.size()),
               request.sampling.max_new_tokens);
  running.open = beams ? 1 : static_cast<std::int64_t>(count);
  running.streams = !beams && request.best_of <= request.n;
  for (Completion& completion : running.completions) completion.length_max = length_max;
  for (std::size_t i = 0; i < count; ++i) {
    running.sequences.push_back(std::make_unique<Sequence>());
    Sequence& sequence = *running.sequences.back();
    sequence.owner = &running;
    sequence.request = &request;
    sequence.completion = beams ? &running.completions.front() : &running.completions[i];
    sequence.rank = rank_of(request);
    sequence.order = next_order_++;
    sequence.length_max = length_max;
    sequence.stretch = model_.rope().stretch_of(length_max);
    sequence.beam = i;
  }
  if (request.begun.empty())
    begin(running);
  else
    go_on(running);
}

// Each sample behind what there is of it: none of them waits for another to read the prompt, whose
// blocks those that come later find in the prefix cache.
void Engine::Impl::go_on(RunningRequest& running) {
  const Request& request = running.request;
  for (std::size_t i = 0; i < running.sequences.size(); ++i) {
    Sequence& sequence = *running.sequences[i];
    const BegunSample& begun = request.begun[i];
    sequence.tokens = request.prompt_ids;
    sequence.tokens.insert(sequence.tokens.end(), begun.ids.begin(), begun.ids.end());
    sequence.completion->ids = begun.ids;
    sequence.completion->logprobs = begun.logprobs;
    sequence.completion->weight_versions = begun.weight_versions;
    if (!begun.finished) scheduler_.add(&sequence);
  }
  // Afterwards: with the last sample that ends the request does.
  for (std::size_t i = 0; i < request.begun.size(); ++i) {
    if (request.begun[i].finished)
      finish(*running.sequences[i],
             request.begun[i].stopped ? FinishReason::kStop : FinishReason::kLength);
  }
}

// Puts the sequences that have not finished at the beginning of the prompt, which the first of them
// reads for all.
void Engine::Impl::begin(RunningRequest& running) {
  const SamplingParams& sampling = running.request.sampling;
  Sequence* leader = nullptr;
  for (const std::unique_ptr<Sequence>& sequence : running.sequences) {
    if (sequence->request == nullptr) continue;
    sequence->tokens = running.request.prompt_ids;
    sequence->held = false;
    sequence->siblings.clear();
    if (!sampling.stop_strings.empty() || (sampling.text && sampling.beam.width == 0)) {
      sequence->text =
          std::make_unique<CompletionText>(*options_.tokenizer, sampling.skip_special_tokens,
                                           sampling.stop_strings, sampling.keep_stop_string);
    }
    if (leader == nullptr) {
      leader = sequence.get();
      leader->reads_prompt_rows = sampling.prompt_logprobs || sampling.prompt_top_logprobs > 0;
      scheduler_.add(leader);
    } else if (sampling.beam.width == 0) {
      leader->siblings.push_back(sequence.get());
    }
  }
  if (sampling.beam.width > 0 && sampling.max_new_tokens > 0) start_beams(running);
}

void Engine::Impl::restart(RunningRequest& running) {
  for (const std::unique_ptr<Sequence>& sequence : running.sequences) {
    if (sequence->request == nullptr) continue;
    scheduler_.remove(sequence.get());
    Completion fresh;
    fresh.request = sequence->completion->request;
    fresh.sample = sequence->completion->sample;
    fresh.length_max = sequence->completion->length_max;
    *sequence->completion = std::move(fresh);
  }
  begin(running);
}

void Engine::Impl::finish(Sequence& sequence, FinishReason reason, runtime::Status status) {
  if (sequence.request == nullptr) return;
  Completion& completion = *sequence.completion;
  completion.finish_reason = reason;
  completion.status = std::move(status);
  if (sequence.text != nullptr) {
    sequence.text->finish(false);
    completion.text = sequence.text->text();
    completion.stop_string = sequence.text->stop_string();
  }
  scheduler_.remove(&sequence);
  sequence.request = nullptr;  // marks it finished
  RunningRequest& running = *sequence.owner;
  if (running.progress != nullptr) ++running.progress->finished;
  if (--running.open == 0) deliver(running);
}

void Engine::Impl::finish_all(RunningRequest& running, FinishReason reason,
                              const runtime::Status& status) {
  if (running.open > 0 && running.request.sampling.beam.width == 0) {
    for (const std::unique_ptr<Sequence>& sequence : running.sequences)
      finish(*sequence, reason, status);
    return;
  }
  // Beams have no completion each, and a request that was refused has no sequences.
  for (const std::unique_ptr<Sequence>& sequence : running.sequences) {
    scheduler_.remove(sequence.get());
    sequence->request = nullptr;
  }
  for (Completion& completion : running.completions) {
    completion.finish_reason = reason;
    completion.status = status;
  }
  if (running.progress != nullptr) running.progress->finished += running.completions.size();
  deliver(running);
}

void Engine::Impl::deliver(RunningRequest& running) {
  if (running.request.best_of > running.request.n &&
      static_cast<std::int64_t>(running.completions.size()) > running.request.n) {
    keep_best(running.completions, running.request.n);
  }
  for (Completion& completion : running.completions) finished_.push_back(std::move(completion));
  auto entry = requests_.extract(running.id);
  done_.push_back(std::move(entry.mapped()));
  if (requests_.empty() && prefixes_ != nullptr &&
      options_.prefix_caching == PrefixCaching::kWhileBusy)
    prefixes_->clear();
}

bool Engine::Impl::abort(RequestId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return false;
  finish_all(*found->second, FinishReason::kAborted);
  done_.clear();
  return true;
}

void Engine::Impl::abort_all() {
  while (!requests_.empty()) finish_all(*requests_.begin()->second, FinishReason::kAborted);
  done_.clear();
  CHECK(scheduler_.idle());
}

runtime::Status Engine::Impl::step() {
  new_tokens_.clear();
  if (paused_ || requests_.empty()) return {};
  try {
    if (adapter_ != model_.used_adapter())
      weights_changed(weight_version_, OnNewWeights::kRecompute);
    run_step();
  } catch (...) {
    abort_all();
    runtime::Status failed = caught_status("rollout");
    if (failed.code() != runtime::ErrorCode::kResourceExhausted) return failed;
    return runtime::resource_exhausted(
        failed.message() + "; lower sequences_max, step_tokens_max or the cache's bytes_max");
  }
  done_.clear();
  if (prefixes_ != nullptr)
    prefixes_->evict(prefixes_->idle() - options_.prefix_bytes_max / cache_->block_bytes());
  return {};
}

void Engine::Impl::drop_computed() {
  for (const auto& [id, running] : requests_) {
    for (const std::unique_ptr<Sequence>& sequence : running->sequences) {
      if (sequence->request != nullptr) scheduler_.drop_blocks(*sequence);
    }
  }
}

void Engine::Impl::pause(bool keep_cache) {
  paused_ = true;
  if (keep_cache) return;
  drop_computed();
  if (prefixes_ != nullptr) prefixes_->clear();
  cache_->release_memory();
}

void Engine::Impl::weights_changed(std::uint64_t version, OnNewWeights policy) {
  weight_version_ = version;
  adapter_ = model_.used_adapter();
  refresh_weights();
  if (prefixes_ != nullptr) prefixes_->clear();
  if (policy == OnNewWeights::kRecompute) drop_computed();
  if (policy == OnNewWeights::kRestart) {
    for (const auto& [id, running] : requests_) restart(*running);
  }
}

void Engine::Impl::refresh_weights() {
  if (quantized_ != nullptr) quantized_->refresh(pool_);
}

EngineStats Engine::Impl::stats() const {
  EngineStats stats = stats_;
  stats.preemptions = scheduler_.preemptions();
  stats.swaps = scheduler_.swaps();
  stats.cached_tokens = scheduler_.matched_tokens();
  if (prefixes_ != nullptr) {
    stats.prefix_blocks = prefixes_->blocks();
    stats.evicted_blocks = prefixes_->evicted();
  }
  return stats;
}

runtime::Result<std::vector<Completion>> Engine::Impl::generate(std::span<const Request> requests,
                                                                const OnStep& on_step) {
  if (paused_)
    return runtime::invalid_argument("generate: the engine is paused; resume() it first");
  EngineProgress progress;
  const RequestId first = next_id_;
  progress.first = first;
  runtime::Status status;
  try {
    for (const Request& request : requests) submit(request, &progress);
  } catch (const std::bad_alloc&) {
    abort_all();
    status = runtime::resource_exhausted(
        "rollout: out of memory; generate with less requests at a time");
  }
  while (status.ok() && progress.finished < progress.total) {
    status = step();
    if (!on_step || !status.ok() || on_step(progress)) continue;
    for (RequestId id = first; id < first + requests.size(); ++id) abort(id);
  }
  const auto own = [&](const Completion& completion) {
    return completion.request >= first && completion.request < first + requests.size();
  };
  const auto begin =
      std::stable_partition(finished_.begin(), finished_.end(),
                            [&](const Completion& completion) { return !own(completion); });
  std::vector<Completion> completions(std::make_move_iterator(begin),
                                      std::make_move_iterator(finished_.end()));
  finished_.erase(begin, finished_.end());
  if (!status.ok()) return status;
  std::stable_sort(completions.begin(), completions.end(),
                   [](const Completion& a, const Completion& b) { return a.request < b.request; });
  for (Completion& completion : completions) completion.request -= first;
  return completions;
}

runtime::Result<std::unique_ptr<Engine>> Engine::create(const Transformer& model,
                                                        const EngineOptions& options) {
  if (options.sequences_max < 1 || options.step_tokens_max < 1) {
    return runtime::invalid_argument(
        "engine: sequences_max and step_tokens_max must be at least 1");
  }
  if (options.requests_max < 1 || options.swap_bytes_max < 0 || options.prefix_bytes_max < 0) {
    return runtime::invalid_argument(
        "engine: requests_max must be at least 1, swap_bytes_max and prefix_bytes_max at least 0");
  }
  const at::Device device = model.parameters().arena().device();
  if (!options.device.empty()) {
    const auto wanted = find_device(options.device);
    if (!wanted.ok()) return wanted.status();
    if (*wanted != device) {
      return runtime::invalid_argument("engine: device is " + options.device +
                                       ", the model's weights are on " + device.str() +
                                       "; load them there (TransformerOptions::device)");
    }
  }
  if (options.weights == EngineWeights::kInt8 && !(options.deterministic && device.is_cpu())) {
    return runtime::invalid_argument(
        "engine: weights in 8 bits are for the deterministic forward on a CPU; take fp32 weights "
        "with deterministic=false or on " +
        device.str());
  }
  const ModelConfig& config = model.config();
  if (config.task != ModelTask::kCausalLm)
    return runtime::invalid_argument(
        "the model is a classifier: it has no output layer over the vocabulary to generate with");
  auto cache =
      KvCache::create({.layers = config.layers, .width = config.kv_size()}, options.cache, device);
  if (!cache.ok()) return cache.status();
  std::unique_ptr<QuantizedWeights> quantized;
  if (options.weights == EngineWeights::kInt8) {
    auto created = QuantizedWeights::create(config, model.parameters());
    if (!created.ok()) return created.status();
    quantized = std::move(*created);
    quantized->refresh(model.pool());
  }
  return std::unique_ptr<Engine>(
      new Engine(std::make_unique<Impl>(model, options, std::move(*cache), std::move(quantized))));
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Engine::~Engine() = default;

runtime::Result<std::vector<Completion>> Engine::generate(std::span<const Request> requests,
                                                          const OnStep& on_step) {
  return impl_->generate(requests, on_step);
}

RequestId Engine::submit(Request request) { return impl_->submit(std::move(request), nullptr); }

runtime::Status Engine::step() { return impl_->step(); }

std::span<const NewToken> Engine::new_tokens() const { return impl_->new_tokens(); }

std::vector<Completion> Engine::take_finished() { return impl_->take_finished(); }

bool Engine::abort(RequestId request) { return impl_->abort(request); }

bool Engine::idle() const { return impl_->idle(); }

void Engine::pause(bool keep_cache) { impl_->pause(keep_cache); }

void Engine::resume() { impl_->resume(); }

bool Engine::paused() const { return impl_->paused(); }

void Engine::weights_changed(std::uint64_t version, OnNewWeights policy) {
  impl_->weights_changed(version, policy);
}

std::uint64_t Engine::weight_version() const { return impl_->weight_version(); }

void Engine::refresh_weights() { impl_->refresh_weights(); }

std::int64_t Engine::copied_weight_bytes() const { return impl_->copied_weight_bytes(); }

EngineStats Engine::stats() const { return impl_->stats(); }

const KvCache& Engine::cache() const { return impl_->cache(); }

}  // namespace rl
