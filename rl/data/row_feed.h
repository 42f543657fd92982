// RowFeed: the rows of a data set in batches, epoch after epoch, going on where a checkpoint left
// off. What the feeds of all trainers stand on.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "rl/data/dataset.h"
#include "rl/data/row_order.h"
#include "rl/data/sampler.h"
#include "runtime/core/result.h"

namespace rl {

/// A data set of up to this many rows is encoded once as a whole before the first step.
inline constexpr std::int64_t kRowsCheckedMax = 10'000;

struct RowFeedOptions {
  std::int64_t batch_rows = 1;
  std::string batch_key = "data.train_batch_size";  // what sets batch_rows, for messages
  bool shuffle = true;
  std::uint64_t shuffle_seed = 0;
};

/// Not thread-safe.
class RowFeed {
 public:
  /// With an `order` that says which rows come, in place of the options' shuffling.
  /// kInvalidArgument: fewer rows than a batch; those of Sampler::create.
  static runtime::Result<RowFeed> create(Dataset dataset, const RowFeedOptions& options,
                                         std::unique_ptr<RowOrder> order = nullptr);

  const Dataset& dataset() const { return dataset_; }
  std::int64_t rows() const { return dataset_.size(); }
  std::int64_t batches_per_epoch() const { return sampler_.batches_per_epoch(options_.batch_rows); }
  std::int64_t epoch() const { return order_ ? order_->epoch() : sampler_.epoch(); }

  /// The next batch's rows. Errors: those of Sampler::next and RowOrder::next.
  runtime::Result<std::vector<std::int64_t>> next() {
    return order_ ? order_->next(options_.batch_rows) : sampler_.next(options_.batch_rows);
  }

  /// Whether learn() does anything; and what came of the last batch's rows.
  bool learns() const { return order_ != nullptr; }
  runtime::Status learn(std::span<const RowOutcome> outcomes) {
    return order_ ? order_->learn(outcomes) : runtime::Status();
  }

  /// All rows in their own order, `batch_rows` at a time; the last batch may have fewer.
  std::vector<std::vector<std::int64_t>> in_order(std::int64_t batch_rows) const;

  nlohmann::json position() const {
    return order_ ? order_->position() : sampler_.state().to_json();
  }
  /// Continues at a saved position. kInvalidArgument: it belongs to other data.
  runtime::Status resume(const nlohmann::json& position);

 private:
  RowFeed(Dataset dataset, const RowFeedOptions& options, Sampler sampler,
          std::unique_ptr<RowOrder> order)
      : dataset_(std::move(dataset)),
        options_(options),
        sampler_(std::move(sampler)),
        order_(std::move(order)) {}

  Dataset dataset_;
  RowFeedOptions options_;
  Sampler sampler_;
  std::unique_ptr<RowOrder> order_;  // null: the sampler's
};

}  // namespace rl
