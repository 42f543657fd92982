#include "rl/data/row_feed.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rl {

using runtime::Result;
using runtime::Status;

Result<RowFeed> RowFeed::create(Dataset dataset, const RowFeedOptions& options,
                                std::unique_ptr<RowOrder> order) {
  if (dataset.size() < options.batch_rows) {
    return runtime::invalid_argument(
        "the data has " + std::to_string(dataset.size()) + " rows, fewer than one batch of " +
        std::to_string(options.batch_rows) + ": set " + options.batch_key + " to at most that");
  }
  const Result<SampleLayout> layout = dataset.layout();
  if (!layout.ok()) return layout.status();
  Result<Sampler> sampler =
      Sampler::create(dataset.size(), options.shuffle, options.shuffle_seed, *layout);
  if (!sampler.ok()) return sampler.status();
  return RowFeed(std::move(dataset), options, std::move(*sampler), std::move(order));
}

std::vector<std::vector<std::int64_t>> RowFeed::in_order(std::int64_t batch_rows) const {
  std::vector<std::vector<std::int64_t>> batches;
  for (std::int64_t begin = 0; begin < rows(); begin += batch_rows) {
    batches.emplace_back(static_cast<std::size_t>(std::min(batch_rows, rows() - begin)));
    std::iota(batches.back().begin(), batches.back().end(), begin);
  }
  return batches;
}

Status RowFeed::resume(const nlohmann::json& position) {
  if (order_) return order_->resume(position);
  const Result<SamplerState> state = SamplerState::from_json(position);
  if (!state.ok()) return state.status();
  const Result<SampleLayout> layout = dataset_.layout();
  if (!layout.ok()) return layout.status();
  Result<Sampler> sampler = Sampler::resume(*state, rows(), *layout);
  if (!sampler.ok()) return sampler.status();
  sampler_ = std::move(*sampler);
  return {};
}

}  // namespace rl
