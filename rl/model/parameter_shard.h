// The part of a model's weights that one rank holds, read without the rest: for FSDP a range of the
// arena, for tensor parallelism rows or columns of each parameter.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "rl/mesh/arena_range.h"
#include "rl/model/model_config.h"
#include "rl/model/parameters.h"
#include "rl/weights/weight_source.h"
#include "runtime/core/result.h"

namespace rl {

/// One of `world` ranks, from 0.
struct ShardRank {
  std::int64_t rank = 0;
  std::int64_t world = 1;
};

/// The rank's range of an arena of that size: equal for all ranks but the last ones, on multiples
/// of kArenaAlignment. Together they cover it once.
ArenaRange arena_shard(std::int64_t elements, ShardRank shard);

/// Elements `range` of the arena that Parameters::load gives, gaps as zeros. Reads the stored bytes
/// of these elements alone, rounded out to whole blocks (GGUF's block formats), heads (its queries
/// and keys) or columns (weights stored the other way round). Errors as Parameters::load;
/// kInvalidArgument: a range beyond the arena.
runtime::Result<at::Tensor> load_arena_range(const ModelConfig& config, const WeightSource& source,
                                             bool gguf_names, ArenaRange range);

/// How a parameter is cut for tensor parallelism: as it lies in the arena, rows being a linear
/// layer's outputs.
enum class SplitBy { kNothing, kRows, kColumns };
using SplitRule = std::function<SplitBy(const ParameterSpec&)>;

/// The rank's part of every parameter in the order of parameter_layout: rows or columns [rank * n /
/// world, (rank + 1) * n / world), or all of it. Only its bytes are read. Errors as
/// Parameters::load; kInvalidArgument: a size that `world` does not divide (or, in GGUF, blocks or
/// heads that would be cut), by name.
runtime::Result<std::vector<at::Tensor>> load_tensor_parallel(const ModelConfig& config,
                                                              const WeightSource& source,
                                                              bool gguf_names, ShardRank shard,
                                                              const SplitRule& rule);

}  // namespace rl
