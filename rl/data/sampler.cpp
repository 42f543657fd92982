#include "rl/data/sampler.h"

#include <numeric>
#include <utility>

#include "rl/data/random.h"

namespace rl {

using runtime::invalid_argument;
using runtime::Result;

nlohmann::json SamplerState::to_json() const {
  nlohmann::json json = {
      {"seed", seed}, {"epoch", epoch}, {"offset", offset}, {"rows", rows}, {"shuffle", shuffle}};
  if (layout != 0) json["layout"] = layout;
  return json;
}

Result<SamplerState> SamplerState::from_json(const nlohmann::json& json) {
  const auto is_integer = [&json](const char* key) {
    return json.contains(key) && json.at(key).is_number_integer();
  };
  if (!json.is_object() || !is_integer("seed") || !is_integer("epoch") || !is_integer("offset") ||
      !is_integer("rows") || !json.contains("shuffle") || !json.at("shuffle").is_boolean()) {
    return invalid_argument(
        "data position: expected an object with seed, epoch, offset, rows and shuffle");
  }
  SamplerState state;
  state.seed = json.at("seed").get<std::uint64_t>();
  state.epoch = json.at("epoch").get<std::int64_t>();
  state.offset = json.at("offset").get<std::int64_t>();
  state.rows = json.at("rows").get<std::int64_t>();
  state.shuffle = json.at("shuffle").get<bool>();
  if (is_integer("layout")) state.layout = json.at("layout").get<std::uint64_t>();
  return state;
}

Result<Sampler> Sampler::make(const SamplerState& state, const SampleLayout& layout) {
  Sampler sampler(state);
  if (layout.empty()) {
    sampler.order_epoch();
    return sampler;
  }
  CHECK(layout.rows() == state.rows);
  Result<SampleOrder> order = SampleOrder::create(layout, state.shuffle, state.seed);
  if (!order.ok()) return order.status();
  sampler.placed_ = std::move(*order);
  return sampler;
}

Result<Sampler> Sampler::create(std::int64_t rows, bool shuffle, std::uint64_t seed,
                                const SampleLayout& layout) {
  if (rows <= 0) return invalid_argument("the data set is empty");
  SamplerState state;
  state.seed = seed;
  state.rows = rows;
  state.shuffle = shuffle;
  state.layout = layout.fingerprint();
  return make(state, layout);
}

Result<Sampler> Sampler::resume(const SamplerState& state, std::int64_t rows,
                                const SampleLayout& layout) {
  if (state.rows != rows) {
    return invalid_argument("data position: saved for a data set of " + std::to_string(state.rows) +
                            " rows, this one has " + std::to_string(rows) +
                            ": resume with the same data files and filters");
  }
  if (state.layout != layout.fingerprint()) {
    return invalid_argument(
        "data position: saved for files of other sizes or weights, or read otherwise: resume with "
        "the same data files, data.train_weights, data.streaming and data.shuffle_window");
  }
  if (rows <= 0 || state.epoch < 0 || state.offset < 0 || state.offset > rows)
    return invalid_argument("data position: out of range");
  return make(state, layout);
}

void Sampler::order_epoch() {
  order_.resize(static_cast<std::size_t>(state_.rows));
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
  if (!state_.shuffle) return;
  // Two rounds of mixing keep (seed, epoch) and (seed + 1, epoch - 1) apart.
  SplitMix random(SplitMix(state_.seed).next() ^ static_cast<std::uint64_t>(state_.epoch));
  for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
}

Result<std::vector<std::int64_t>> Sampler::next(std::int64_t batch) {
  if (batch <= 0) return invalid_argument("a batch must have at least one row");
  if (batch > state_.rows) {
    return invalid_argument("a batch of " + std::to_string(batch) + " rows from a data set of " +
                            std::to_string(state_.rows) +
                            ": lower data.train_batch_size or add data");
  }
  if (state_.rows - state_.offset < batch) {
    ++state_.epoch;
    state_.offset = 0;
    if (!placed_) order_epoch();
  }
  if (placed_) {
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < batch; ++i)
      rows.push_back(placed_->row(state_.epoch, state_.offset++));
    return rows;
  }
  const auto first = order_.begin() + state_.offset;
  state_.offset += batch;
  return std::vector<std::int64_t>(first, first + batch);
}

}  // namespace rl
