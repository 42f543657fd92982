// Private to rl/rollout: the engine's state and its parts. engine.cpp: requests in and out;
// engine_step.cpp: a step; engine_beams.cpp: beam search in it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rl/model/quantized_weights.h"
#include "rl/rollout/decoder.h"
#include "rl/rollout/engine.h"
#include "rl/rollout/prefix_cache.h"
#include "rl/rollout/running_request.h"
#include "rl/rollout/sampler.h"
#include "rl/rollout/scheduler.h"

namespace rl {

class Engine::Impl {
 public:
  Impl(const Transformer& model, const EngineOptions& options, std::unique_ptr<KvCache> cache,
       std::unique_ptr<QuantizedWeights> quantized);
  ~Impl();

  runtime::Result<std::vector<Completion>> generate(std::span<const Request> requests,
                                                    const OnStep& on_step);
  RequestId submit(Request request, EngineProgress* progress);
  runtime::Status step();
  bool abort(RequestId id);
  std::vector<Completion> take_finished() { return std::exchange(finished_, {}); }
  bool idle() const { return requests_.empty(); }
  void pause(bool keep_cache);
  void resume() { paused_ = false; }
  bool paused() const { return paused_; }
  void weights_changed(std::uint64_t version, OnNewWeights policy);
  std::uint64_t weight_version() const { return weight_version_; }
  std::span<const NewToken> new_tokens() const { return new_tokens_; }
  void refresh_weights();
  std::int64_t copied_weight_bytes() const {
    return quantized_ != nullptr ? quantized_->bytes() : 0;
  }
  EngineStats stats() const;
  const KvCache& cache() const { return *cache_; }

 private:
  // A row of the step whose logits choose a token for `sequence`.
  struct Choice {
    Sequence* sequence;
    std::int64_t row;
  };

  // engine.cpp
  std::int64_t context_max() const;
  runtime::Status validate(const Request& request) const;
  runtime::Status validate_ids(const Request& request) const;
  runtime::Status validate_begun(const Request& request) const;
  std::int64_t rank_of(const Request& request) const;
  void start(RunningRequest& running);
  void begin(RunningRequest& running);
  void go_on(RunningRequest& running);
  void restart(RunningRequest& running);
  void finish(Sequence& sequence, FinishReason reason, runtime::Status status = {});
  void finish_all(RunningRequest& running, FinishReason reason, const runtime::Status& status = {});
  void deliver(RunningRequest& running);
  void drop_computed();
  void abort_all();

  // engine_step.cpp
  void run_step();
  void score_prompt(const ScheduledTokens& part, std::int64_t first_row);
  void start_siblings(Sequence& sequence);
  void choose(std::span<const Choice> choices);
  std::vector<SampledToken> sample(
      std::span<SampleRow> rows, std::span<const std::int64_t> logit_rows, const at::Tensor& logits,
      const std::function<std::span<const float>(std::int64_t)>& host_row);
  void append(Sequence& sequence, SampledToken token);
  static void stamp(Completion& completion, std::uint64_t version);
  std::vector<std::int32_t> stop_ids(const SamplingParams& params) const;

  // engine_beams.cpp
  void start_beams(RunningRequest& running);
  void collect_candidates(Sequence& sequence, std::span<const float> logits);
  void advance_beams(RunningRequest& running);
  void move_beams(RunningRequest& running, std::size_t before);
  void finish_beams(RunningRequest& running);

  const Transformer& model_;
  kernel::ThreadPool& pool_;
  EngineOptions options_;
  const std::vector<std::int32_t> end_ids_;  // the model's end-of-sequence ids, the tokenizer's
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<PrefixCache> prefixes_;        // null: off
  std::unique_ptr<QuantizedWeights> quantized_;  // null: fp32
  Decoder decoder_;
  Scheduler scheduler_;
  EngineStats stats_;
  std::map<RequestId, std::unique_ptr<RunningRequest>> requests_;
  std::vector<std::unique_ptr<RunningRequest>>
      done_;  // delivered in this step, which may still look at them
  std::vector<Completion> finished_;
  std::vector<NewToken> new_tokens_;
  std::string adapter_;  // that the weights had
  RequestId next_id_ = 0;
  std::uint64_t next_order_ = 0;
  std::uint64_t weight_version_ = 0;
  bool paused_ = false;
};

}  // namespace rl
