// Private to rl/rollout: beam search in an engine. Every beam is a sequence, held when its
// candidates are known until those of all beams are.
#pragma once

#include <cstdint>
#include <span>

#include "rl/kernel/thread_pool.h"
#include "rl/rollout/engine_setting.h"
#include "rl/rollout/engine_stats.h"
#include "rl/rollout/kv_cache.h"
#include "rl/rollout/open_requests.h"
#include "rl/rollout/running_request.h"
#include "rl/rollout/scheduler.h"

namespace rl {

class EngineBeams {
 public:
  /// Borrows all.
  EngineBeams(const EngineSetting& setting, kernel::ThreadPool& pool, KvCache& cache,
              Scheduler& scheduler, OpenRequests& requests, EngineStats& stats)
      : setting_(setting),
        pool_(pool),
        cache_(cache),
        scheduler_(scheduler),
        requests_(requests),
        stats_(stats) {}

  /// The likeliest ways on from one beam; with those of the last beam the search continues.
  void collect(Sequence& sequence, std::span<const float> logits, std::uint64_t weight_version);

 private:
  void advance(RunningRequest& running, std::uint64_t weight_version);
  void move(RunningRequest& running, std::size_t before);
  void finish(RunningRequest& running);

  const EngineSetting& setting_;
  kernel::ThreadPool& pool_;
  KvCache& cache_;
  Scheduler& scheduler_;
  OpenRequests& requests_;
  EngineStats& stats_;
};

}  // namespace rl
