// RowOrder: the order of rows by the course of training or by custom code, rather than by a seed
// alone (sampler.h).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// What came of one sample of a row.
struct RowOutcome {
  std::int64_t row = 0;
  double score = 0.0;
  std::int64_t response_tokens = 0;
};

/// Not thread-safe.
class RowOrder {
 public:
  virtual ~RowOrder() = default;

  /// The next `batch` rows.
  virtual runtime::Result<std::vector<std::int64_t>> next(std::int64_t batch) = 0;
  /// The epoch that the last batch belonged to, from 0.
  virtual std::int64_t epoch() const = 0;
  /// What came of the rows that next() gave last; once a step, after it.
  virtual runtime::Status learn(std::span<const RowOutcome> outcomes) = 0;

  /// For checkpoints. After resume() the same rows come as would have come here. kInvalidArgument:
  /// not such a position, or of other data.
  virtual nlohmann::json position() const = 0;
  virtual runtime::Status resume(const nlohmann::json& position) = 0;
};

}  // namespace rl
