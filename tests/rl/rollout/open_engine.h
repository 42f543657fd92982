// The parts of an engine that hold its requests, around a small random model.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "rl/kernel/thread_pool.h"
#include "rl/rollout/engine_setting.h"
#include "rl/rollout/kv_cache.h"
#include "rl/rollout/open_requests.h"
#include "rl/rollout/prefix_cache.h"
#include "rl/rollout/scheduler.h"
#include "tests/rl/rollout/tiny_model.h"

namespace rl::testing {

inline std::unique_ptr<KvCache> tiny_cache(std::int64_t blocks) {
  const ModelConfig config = tiny_config();
  const KvShape shape{.layers = config.layers, .width = config.kv_heads * config.head_dim};
  const std::int64_t block_bytes = 2 * shape.layers * shape.width * 16 * 4;
  auto cache = KvCache::create(shape, {.bytes_max = blocks * block_bytes, .block_tokens = 16});
  EXPECT_TRUE(cache.ok()) << cache.status().to_string();
  EXPECT_EQ((*cache)->blocks(), blocks);
  return std::move(*cache);
}

/// What the parts of an engine borrow, and its requests.
struct OpenEngine {
  explicit OpenEngine(const EngineOptions& options = {})
      : model(tiny_model()), setting(*model, options), cache(tiny_cache(32)) {}

  /// Without the checks of an engine.
  RequestId add(Request request) { return requests.add(std::move(request), {}, &progress); }

  const std::unique_ptr<Transformer> model;
  const EngineSetting setting;
  kernel::ThreadPool pool{1};
  const std::unique_ptr<KvCache> cache;
  PrefixCache prefixes{*cache};
  Scheduler scheduler{*cache, {}};
  OpenRequests requests{setting, scheduler, &prefixes};
  EngineProgress progress;
  EngineStats stats;
};

}  // namespace rl::testing
