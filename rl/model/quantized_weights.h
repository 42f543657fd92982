// 8-bit copies of a model's linear layers, which a pass may read in place of the weights. They are
// for generating, whose time is the time to read the weights.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rl/kernel/int8.h"
#include "rl/kernel/thread_pool.h"
#include "rl/model/model_config.h"
#include "rl/model/parameters.h"
#include "runtime/core/result.h"

namespace rl {

/// The weights of every matrix product of a model, the output layer included (a tied embedding,
/// too, as the output layer). Not those of embeddings, of routers, whose choices hang on small
/// differences, nor of heads and adapters.
///
/// A copy of what the arena held at the last refresh(): code that changes the arena says so by
/// another. One thread at a time; borrows the arena.
class QuantizedWeights {
 public:
  /// Copies nothing yet. kInvalidArgument: the arena is on another device. kResourceExhausted: out
  /// of memory.
  static runtime::Result<std::unique_ptr<QuantizedWeights>> create(const ModelConfig& config,
                                                                   const Parameters& parameters);

  /// Rounds the arena's present values. Cost: one pass over the weights, on all threads.
  void refresh(kernel::ThreadPool& pool);

  /// What stands for the dense rows of `in` columns that begin at `weight`; none if they are not
  /// all of one layer's.
  kernel::Int8Weight find(const float* weight, std::int64_t rows, std::int64_t in) const;

  std::int64_t bytes() const {
    return values_bytes_ + scales_count_ * static_cast<std::int64_t>(sizeof(float));
  }

 private:
  struct Layer {
    const float* weight = nullptr;  // in the arena
    std::int64_t out = 0;
    std::int64_t in = 0;
    std::int64_t values = 0;  // where its copy begins
    std::int64_t scales = 0;
  };

  std::vector<Layer> layers_;  // in the order of the arena
  std::int64_t values_bytes_ = 0;
  std::int64_t scales_count_ = 0;
  std::unique_ptr<std::int8_t[]> values_;
  std::unique_ptr<float[]> scales_;
};

}  // namespace rl
