// Private to rl/rollout: one step of an engine. Rows through the model, log-probs of prompts, a
// token for each sequence that was read to its end.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "rl/kernel/thread_pool.h"
#include "rl/rollout/decoder.h"
#include "rl/rollout/engine_beams.h"
#include "rl/rollout/engine_setting.h"
#include "rl/rollout/engine_stats.h"
#include "rl/rollout/open_requests.h"
#include "rl/rollout/prefix_cache.h"
#include "rl/rollout/sampler.h"
#include "rl/rollout/scheduler.h"

namespace rl {

class EngineStep {
 public:
  /// Borrows all; `prefixes` may be null.
  EngineStep(const EngineSetting& setting, kernel::ThreadPool& pool, Decoder& decoder,
             KvCache& cache, PrefixCache* prefixes, Scheduler& scheduler, OpenRequests& requests,
             EngineStats& stats)
      : setting_(setting),
        pool_(pool),
        decoder_(decoder),
        cache_(cache),
        prefixes_(prefixes),
        scheduler_(scheduler),
        requests_(requests),
        stats_(stats),
        beams_(setting, pool, cache, scheduler, requests, stats) {}

  /// `weight_version`: of the weights that the model has now.
  void run(std::uint64_t weight_version);

  /// Those of the last step, of requests that stream.
  std::span<const NewToken> new_tokens() const { return new_tokens_; }
  void clear_new_tokens() { new_tokens_.clear(); }

 private:
  // A row of the step whose logits choose a token for `sequence`.
  struct Choice {
    Sequence* sequence;
    std::int64_t row;
  };

  void score_prompt(const ScheduledTokens& part, std::int64_t first_row);
  void start_siblings(Sequence& sequence);
  void choose(std::span<const Choice> choices);
  std::vector<SampledToken> sample(
      std::span<SampleRow> rows, std::span<const std::int64_t> logit_rows, const at::Tensor& logits,
      const std::function<std::span<const float>(std::int64_t)>& host_row);
  void append(Sequence& sequence, SampledToken token);

  const EngineSetting& setting_;
  kernel::ThreadPool& pool_;
  Decoder& decoder_;
  KvCache& cache_;
  PrefixCache* prefixes_;
  Scheduler& scheduler_;
  OpenRequests& requests_;
  EngineStats& stats_;
  EngineBeams beams_;
  std::uint64_t weight_version_ = 0;
  std::vector<NewToken> new_tokens_;
};

}  // namespace rl
