// Sampler: the order of rows by a seed. Its whole state is three numbers, so that a resumed run
// sees the same order.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "rl/data/sample_order.h"
#include "runtime/core/result.h"

namespace rl {

/// Where a sampler stands: `offset` rows of epoch `epoch` have been handed out.
struct SamplerState {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t offset = 0;
  std::int64_t rows = 0;  // of the data set it belongs to: resuming on another one is refused
  bool shuffle = true;
  std::uint64_t layout = 0;  // SampleLayout::fingerprint()

  nlohmann::json to_json() const;
  static runtime::Result<SamplerState> from_json(const nlohmann::json& json);
  bool operator==(const SamplerState&) const = default;
};

/// Hands out row numbers in batches, epoch after epoch, each row once per epoch. Rows left over at
/// the end of an epoch that do not fill a batch are dropped, as verl does. The order of an epoch
/// depends on (seed, epoch, rows) only, with a layout on that too (SampleOrder says how). It is the
/// same on every platform. Not thread-safe. Memory: 8 bytes per row without a layout.
class Sampler {
 public:
  /// kInvalidArgument: no rows, weights that cannot be. CHECKs that the layout is empty or has
  /// `rows`.
  static runtime::Result<Sampler> create(std::int64_t rows, bool shuffle, std::uint64_t seed,
                                         const SampleLayout& layout = {});
  /// Continues where `state` was saved. kInvalidArgument: it was saved for a data set of another
  /// size or layout, or is out of range.
  static runtime::Result<Sampler> resume(const SamplerState& state, std::int64_t rows,
                                         const SampleLayout& layout = {});

  /// The next `batch` rows. kInvalidArgument: more than the data set has, or none asked for.
  runtime::Result<std::vector<std::int64_t>> next(std::int64_t batch);

  /// The epoch that the last batch belonged to, from 0.
  std::int64_t epoch() const { return state_.epoch; }
  const SamplerState& state() const { return state_; }
  /// Batches in one epoch.
  std::int64_t batches_per_epoch(std::int64_t batch) const {
    return batch > 0 ? state_.rows / batch : 0;
  }

 private:
  static runtime::Result<Sampler> make(const SamplerState& state, const SampleLayout& layout);
  explicit Sampler(const SamplerState& state) : state_(state) {}
  void order_epoch();

  SamplerState state_;
  std::vector<std::int64_t> order_;    // of the epoch, without a layout
  std::optional<SampleOrder> placed_;  // with one
};

}  // namespace rl
