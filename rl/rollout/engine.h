// The rollout engine: many requests decoded together, each with the numbers it would get alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rl/rollout/engine_options.h"
#include "rl/rollout/engine_stats.h"
#include "rl/rollout/kv_cache.h"
#include "rl/rollout/request.h"
#include "runtime/core/result.h"

namespace rl {

class Transformer;

/// Where generate() is.
struct EngineProgress {
  std::size_t finished = 0;  // completions
  std::size_t total = 0;     // completions asked for
  std::int64_t generated_tokens = 0;
  RequestId first = 0;  // the request of the first in the list; the others follow, one by one
};

/// A token of the last step, as it came. Not of requests with beam search or best_of, whose tokens
/// may yet be discarded.
struct NewToken {
  RequestId request = 0;
  std::int64_t sample = 0;
  std::int32_t id = 0;
  float logprob = 0;
  std::string text = {};  // what can be said of the text by now, where SamplingParams::text asks
                          // for it; the pieces joined are Completion::text
  bool last = false;
};

/// Generates with a Transformer's weights, read where the trainer keeps them. After an update of
/// the arena the next generate() uses the new values, with nothing copied. With 8-bit weights it
/// uses them from the next refresh_weights() on.
///
/// Continuous batching (Yu et al. 2022, "Orca"): sequences enter when there is room and leave when
/// they finish. Samples of one prompt share its blocks, and so do prompts that begin alike. When
/// blocks run out, the last sequence gives its own back and is computed again later (or comes back
/// from where it was swapped to). A completion depends on its request alone, to the bit. It does
/// not depend on what else is in the batch, on threads, on the prefix cache or on preemptions.
/// (With EngineOptions::deterministic false, and on other devices than the CPU, it does: log-probs
/// are then near these, and a draw may go to a neighbour.)
///
/// Two ways to use it. generate() answers a list of requests. Or, request by request: submit(),
/// step() while not idle(), take_finished(). Requests may be submitted and aborted between any two
/// steps.
///
/// One thread at a time, and none training the model meanwhile; borrows the model and runs on its
/// pool.
class Engine {
 public:
  /// Called after every step; returning false ends generate() with what there is
  /// (FinishReason::kAborted). It may submit and abort, but not take_finished().
  using OnStep = std::function<bool(const EngineProgress&)>;

  /// kInvalidArgument: a model that the engine can't run, options that do not go together, a device
  /// where the model is not. kUnavailable: see find_device. kResourceExhausted, kInvalidArgument:
  /// see KvCache::create and QuantizedWeights::create.
  static runtime::Result<std::unique_ptr<Engine>> create(const Transformer& model,
                                                         const EngineOptions& options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// All samples of all requests: request by request, sample by sample. A request that can't be
  /// served gets completions with an error status; the others are not affected. Such a request has
  /// an empty prompt, is too long, has bad parameters, or gets logits that are not finite. Requests
  /// that were submitted are worked on as well. kInvalidArgument: paused. kResourceExhausted: out
  /// of memory; every request is then gone.
  runtime::Result<std::vector<Completion>> generate(std::span<const Request> requests,
                                                    const OnStep& on_step = nullptr);

  // -- Request by request

  /// Takes a request. One that can't be served is finished at once, with an error status.
  RequestId submit(Request request);

  /// One forward pass, and a token for every sequence that it brings to its end. Nothing when idle
  /// or paused. kResourceExhausted: out of memory; every request is then finished as aborted.
  runtime::Status step();

  /// The tokens of the last step().
  std::span<const NewToken> new_tokens() const;

  /// Requests that finished since the last call, in that order, each with all its completions
  /// (FinishReason::kAborted for those of an aborted one).
  std::vector<Completion> take_finished();

  /// Ends a request with what there is. False: there is no such request, or it has finished.
  bool abort(RequestId request);

  /// No request is left to work on; finished ones may wait to be taken.
  bool idle() const;

  // -- New weights

  /// step() does nothing until resume(). With `keep_cache` false all keys and values are dropped
  /// and their memory given back; they are computed again later.
  void pause(bool keep_cache);
  void resume();
  bool paused() const;

  /// To be called between two steps when the weights of the model have changed, in place or to
  /// another adapter. Tokens chosen from now on carry `version`. Whatever the policy, the prefix
  /// cache forgets what the old weights computed, and weights in 8 bits are made again.
  void weights_changed(std::uint64_t version, OnNewWeights policy = OnNewWeights::kContinue);
  std::uint64_t weight_version() const;

  /// Makes the 8-bit copy again, as create() made it. Call it after every change of the weights
  /// that weights_changed() does not tell of. That is an update, a version received, or an adapter
  /// merged or taken out. Using another adapter changes no weights. Does nothing for fp32 weights,
  /// which need no copy. Cost: one pass over the weights.
  void refresh_weights();

  /// Bytes of the 8-bit copy; 0 without one.
  std::int64_t copied_weight_bytes() const;

  EngineStats stats() const;
  const KvCache& cache() const;

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rl
