#include "rl/worker/policy_worker.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "rl/model/device.h"
#include "rl/model/guarded.h"
#include "rl/plan/memory_plan.h"
#include "rl/tokenizer/tokenizer.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// On a device passes are as large as half of what is free allows. The engine's cache is what they
// leave: all of its memory is taken at once. Gradients are not there yet, nor are weights that come
// by units: all of them while it generates.
Status fit_device(const Transformer& model, std::int64_t workers, PolicyOptions& options,
                  EngineOptions& engine) {
  const std::optional<DeviceRoom> room = device_room(model.parameters().arena().device());
  if (!room) return {};
  const ModelConfig& config = model.config();
  MicroBatchLimits& limits = options.micro_batch;
  constexpr auto kElement = static_cast<std::int64_t>(sizeof(float));
  const bool gradients_by_units =
      workers > 1 && !options.adapter && options.learner.zero >= ZeroLevel::kGradients;
  const std::int64_t weights = model.parameters().arena_size() * kElement;
  const std::int64_t gradients =
      gradients_by_units ? 0 : model.trained_parameters().arena_size() * kElement;
  const std::int64_t coming = model.parameters().pages() != nullptr ? weights : 0;
  const std::int64_t free = std::max<std::int64_t>(0, room->free - gradients);
  MemoryOptions memory{.trained_elements = options.adapter ? model.trained_parameters().arena_size()
                                                           : std::int64_t{-1},
                       .positions = engine.context_max,
                       .workers = workers,
                       .zero = options.learner.zero,
                       .reshard_after_forward = options.learner.reshard_after_forward,
                       .recompute_layers = options.recompute_layers,
                       .bf16 = options.bf16,
                       .on_device = true};
  if (limits.tokens_max > 0) {
    const std::int64_t fitting = tokens_that_fit(config, memory, limits.tokens_max, free / 2);
    if (fitting < limits.tokens_max)
      LOG(info, "passes of {} tokens instead of {}: the device has {} free", fitting,
          limits.tokens_max, bytes_text(room->free));
    limits.tokens_max = fitting;
  }
  memory.forward_tokens = memory.output_tokens =
      limits.samples_max > 0 ? limits.samples_max * engine.context_max
                             : std::max(limits.tokens_max, engine.context_max);
  const Result<std::int64_t> bytes =
      plan_cache({.device_total = room->total,
                  .device_free = free,
                  .utilization = options.engine.utilization,
                  .weights = weights,
                  .passes = std::max(coming, pass_bytes(training_memory(config, memory))),
                  .token_bytes = cache_token_bytes(config),
                  .longest = engine.context_max,
                  .sequences = engine.sequences_max});
  if (!bytes.ok()) return bytes.status();
  engine.cache.bytes_max = *bytes;
  return {};
}

}  // namespace

Result<std::unique_ptr<PolicyWorker>> PolicyWorker::create(const PolicyOptions& wanted,
                                                           TrainingRanks ranks) {
  at::set_num_threads(wanted.threads);  // backward's matrix products
  Result<std::unique_ptr<Transformer>> model = load_policy(wanted, ranks);
  if (!model.ok()) return model.status();
  PolicyOptions options = wanted;
  EngineOptions engine_options;
  engine_options.deterministic = options.deterministic_rollouts;
  engine_options.sequences_max = options.engine.sequences_max;
  engine_options.step_tokens_max = options.engine.step_tokens_max;
  engine_options.context_max =
      std::min(options.positions_max, (*model)->config().max_position_embeddings);
  const Status fits = fit_device(**model, ranks.all->size(), options, engine_options);
  if (!fits.ok()) return fits;
  std::unique_ptr<PolicyWorker> worker(new PolicyWorker());
  const Status learns = guarded<void>("the policy's gradients and optimizer", [&] {
    worker->learner_ =
        std::make_unique<PolicyLearner>(options, std::move(*model), std::move(ranks));
  });
  if (!learns.ok()) return learns;
  // The caller that begins a run has read the tokenizer: without one there is no text to end.
  Result<Tokenizer> tokenizer = Tokenizer::load(options.model);
  if (tokenizer.ok() && tokenizer->eos_id()) engine_options.end_ids = {*tokenizer->eos_id()};
  if (options.agent) {
    engine_options.prefix_caching =
        PrefixCaching::kKeep;  // while all wait for tools, too; generate() forgets it
  }
  Result<std::unique_ptr<Conversations>> agent = make_conversations(options, std::move(tokenizer));
  if (!agent.ok()) return agent.status();
  Result<std::unique_ptr<Engine>> engine = Engine::create(worker->model(), engine_options);
  if (!engine.ok()) return engine.status();
  worker->weights_ = std::make_unique<SharedWeights>(worker->learner_->learner());
  worker->generator_ = std::make_unique<PolicyGenerator>(
      GeneratorOptions{.training = options.training, .validation = options.validation},
      std::move(*engine), std::move(*agent), *worker->weights_);
  worker->learner_->measure_peak_flops();
  return worker;
}

}  // namespace rl
