// The rollout engine: many requests decoded together, each with the numbers it would get alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "rl/rollout/kv_cache.h"
#include "rl/rollout/request.h"
#include "runtime/core/result.h"

namespace rl {

class Transformer;

/// What the engine multiplies with.
enum class EngineWeights {
  kFp32,  // the model's own
  kInt8,  // a copy of its linear layers in 8 bits, a quarter of their size: faster where reading weights takes the time
};

struct EngineOptions {
  KvCacheOptions cache = {};
  std::int64_t sequences_max = 64;    // decoded together
  std::int64_t step_tokens_max = 512;  // rows of one forward step: decoding sequences first, prompts in pieces with what is left
  EngineWeights weights = EngineWeights::kFp32;
  std::int64_t context_max = 0;        // tokens of prompt and completion together; 0: the model's max_position_embeddings
};

/// Where generate() is.
struct EngineProgress {
  std::size_t finished = 0;          // completions
  std::size_t total = 0;             // completions asked for
  std::int64_t generated_tokens = 0;
};

/// What the engine did since it was made.
struct EngineStats {
  std::int64_t steps = 0;
  std::int64_t prompt_tokens = 0;     // rows spent on reading tokens that were known; prompts once per request, plus preemptions
  std::int64_t generated_tokens = 0;
  std::int64_t preemptions = 0;       // sequences whose cache was dropped for lack of blocks, to be computed again
  std::int64_t blocks_peak = 0;       // cache blocks in use at once
};

/// Generates with a Transformer's weights, read where the trainer keeps them: after an update of the arena the next generate() uses
/// the new values, with nothing copied. With 8-bit weights it uses them from the next refresh_weights() on.
///
/// Continuous batching (Yu et al. 2022, "Orca"): sequences enter when there is room and leave when they finish; samples of one prompt
/// share its blocks. When blocks run out, the youngest sequence gives its own back and is computed again later. A completion depends
/// on its request alone, to the bit: not on what else is in the batch, on threads, or on preemptions.
///
/// One thread at a time, and none training the model meanwhile; borrows the model and runs on its pool.
class Engine {
 public:
  /// Called after every step; returning false ends generate() with what there is (FinishReason::kAborted).
  using OnStep = std::function<bool(const EngineProgress&)>;

  /// kUnimplemented: a model that the engine can't run. kResourceExhausted, kInvalidArgument: see KvCache::create and QuantizedWeights::create.
  static runtime::Result<std::unique_ptr<Engine>> create(const Transformer& model, const EngineOptions& options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// All samples of all requests: request by request, sample by sample. A request that can't be served (empty prompt, too long, bad
  /// parameters, logits that are not finite) gets completions with an error status; the others are not affected.
  runtime::Result<std::vector<Completion>> generate(std::span<const Request> requests, const OnStep& on_step = nullptr);

  /// Makes the 8-bit copy anew, as create() made it: to be called after every change of the weights (an update, a version received, an adapter merged or
  /// taken out; using another adapter changes none). Does nothing for fp32 weights, which need no copy. Cost: one pass over the weights.
  void refresh_weights();

  /// Bytes of the 8-bit copy; 0 without one.
  std::int64_t copied_weight_bytes() const;

  const EngineStats& stats() const;
  const KvCache& cache() const;

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rl
