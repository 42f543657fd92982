#include "rl/rollout/engine.h"

#include <algorithm>
#include <new>
#include <string>

#include "rl/model/device.h"
#include "rl/model/guarded.h"
#include "rl/model/quantized_weights.h"
#include "rl/model/transformer.h"
#include "rl/rollout/decoder.h"
#include "rl/rollout/engine_setting.h"
#include "rl/rollout/engine_step.h"
#include "rl/rollout/open_requests.h"
#include "rl/rollout/prefix_cache.h"
#include "rl/rollout/request_check.h"
#include "rl/rollout/scheduler.h"

namespace rl {

class Engine::Impl {
 public:
  Impl(const Transformer& model, const EngineOptions& options, std::unique_ptr<KvCache> cache,
       std::unique_ptr<QuantizedWeights> quantized)
      : setting_(model, options),
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
        requests_(setting_, scheduler_,
                  options.prefix_caching == PrefixCaching::kWhileBusy ? prefixes_.get() : nullptr),
        step_(setting_, model.pool(), decoder_, *cache_, prefixes_.get(), scheduler_, requests_,
              stats_),
        adapter_(model.used_adapter()) {}

  runtime::Result<std::vector<Completion>> generate(std::span<const Request> requests,
                                                    const OnStep& on_step);
  RequestId submit(Request request, EngineProgress* progress);
  runtime::Status step();
  bool abort(RequestId id) { return requests_.abort(id); }
  std::vector<Completion> take_finished() { return requests_.take_finished(); }
  bool idle() const { return requests_.empty(); }
  void pause(bool keep_cache);
  void resume() { paused_ = false; }
  bool paused() const { return paused_; }
  void weights_changed(std::uint64_t version, OnNewWeights policy);
  std::uint64_t weight_version() const { return weight_version_; }
  std::span<const NewToken> new_tokens() const { return step_.new_tokens(); }
  void refresh_weights() {
    if (quantized_ != nullptr) quantized_->refresh(setting_.model.pool());
  }
  std::int64_t copied_weight_bytes() const {
    return quantized_ != nullptr ? quantized_->bytes() : 0;
  }
  EngineStats stats() const;
  const KvCache& cache() const { return *cache_; }

 private:
  const EngineSetting setting_;
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<PrefixCache> prefixes_;        // null: off
  std::unique_ptr<QuantizedWeights> quantized_;  // null: fp32
  Decoder decoder_;
  Scheduler scheduler_;
  EngineStats stats_;
  OpenRequests requests_;
  EngineStep step_;
  std::string adapter_;  // that the weights had
  std::uint64_t weight_version_ = 0;
  bool paused_ = false;
};

RequestId Engine::Impl::submit(Request request, EngineProgress* progress) {
  const runtime::Status status = check_request(setting_, *cache_, requests_.size(), request);
  return requests_.add(std::move(request), status, progress);
}

runtime::Status Engine::Impl::step() {
  step_.clear_new_tokens();
  if (paused_ || requests_.empty()) return {};
  try {
    if (adapter_ != setting_.model.used_adapter())
      weights_changed(weight_version_, OnNewWeights::kRecompute);
    step_.run(weight_version_);
  } catch (...) {
    requests_.abort_all();
    runtime::Status failed = caught_status("rollout");
    if (failed.code() != runtime::ErrorCode::kResourceExhausted) return failed;
    return runtime::resource_exhausted(
        failed.message() + "; lower sequences_max, step_tokens_max or the cache's bytes_max");
  }
  requests_.forget_delivered();
  if (prefixes_ != nullptr)
    prefixes_->evict(prefixes_->idle() - setting_.options.prefix_bytes_max / cache_->block_bytes());
  return {};
}

void Engine::Impl::pause(bool keep_cache) {
  paused_ = true;
  if (keep_cache) return;
  requests_.drop_computed();
  if (prefixes_ != nullptr) prefixes_->clear();
  cache_->release_memory();
}

void Engine::Impl::weights_changed(std::uint64_t version, OnNewWeights policy) {
  weight_version_ = version;
  adapter_ = setting_.model.used_adapter();
  refresh_weights();
  if (prefixes_ != nullptr) prefixes_->clear();
  if (policy == OnNewWeights::kRecompute) requests_.drop_computed();
  if (policy == OnNewWeights::kRestart) requests_.restart_all();
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
  const RequestId first = requests_.next_id();
  progress.first = first;
  runtime::Status status;
  try {
    for (const Request& request : requests) submit(request, &progress);
  } catch (const std::bad_alloc&) {
    requests_.abort_all();
    status = runtime::resource_exhausted(
        "rollout: out of memory; generate with less requests at a time");
  }
  while (status.ok() && progress.finished < progress.total) {
    status = step();
    if (!on_step || !status.ok() || on_step(progress)) continue;
    for (RequestId id = first; id < first + requests.size(); ++id) abort(id);
  }
  std::vector<Completion> completions = requests_.take_finished(first, first + requests.size());
  if (!status.ok()) return status;
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
