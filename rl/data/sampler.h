// Sampler: which rows come next. Its whole state is three numbers, so that a resumed run sees the same order.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// Where a sampler stands: `offset` rows of epoch `epoch` have been handed out.
struct SamplerState {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t offset = 0;
  std::int64_t rows = 0;  // of the data set it belongs to: resuming on another one is refused
  bool shuffle = true;

  nlohmann::json to_json() const;
  static runtime::Result<SamplerState> from_json(const nlohmann::json& json);
  bool operator==(const SamplerState&) const = default;
};

/// Hands out row numbers in batches, epoch after epoch, each row once per epoch; rows left over at the end of an epoch that do not fill a
/// batch are dropped, as verl does. The order of an epoch depends on (seed, epoch, rows) only and is the same on every platform.
/// Not thread-safe. Memory: 8 bytes per row.
class Sampler {
 public:
  /// kInvalidArgument: no rows.
  static runtime::Result<Sampler> create(std::int64_t rows, bool shuffle, std::uint64_t seed);
  /// Continues where `state` was saved. kInvalidArgument: it was saved for a data set of another size, or is out of range.
  static runtime::Result<Sampler> resume(const SamplerState& state, std::int64_t rows);

  /// The next `batch` rows. kInvalidArgument: more than the data set has, or none asked for.
  runtime::Result<std::vector<std::int64_t>> next(std::int64_t batch);

  /// The epoch that the last batch belonged to, from 0.
  std::int64_t epoch() const { return state_.epoch; }
  const SamplerState& state() const { return state_; }
  /// Batches in one epoch.
  std::int64_t batches_per_epoch(std::int64_t batch) const { return batch > 0 ? state_.rows / batch : 0; }

 private:
  explicit Sampler(const SamplerState& state);
  void order_epoch();

  SamplerState state_;
  std::vector<std::int64_t> order_;
};

}  // namespace rl
