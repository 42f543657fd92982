#include "rl/data/adaptive_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "rl/data/random.h"

namespace rl {
namespace {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

constexpr const char* kAdaptiveKind = "adarft";

class AdaptiveOrder : public RowOrder {
 public:
  AdaptiveOrder(std::vector<double> difficulties, const AdaptiveOrderOptions& options)
      : difficulties_(std::move(difficulties)),
        options_(options),
        target_(options.difficulty_min) {}

  Result<std::vector<std::int64_t>> next(std::int64_t batch) override {
    if (batch < 1 || batch > rows())
      return runtime::invalid_argument("a batch of " + std::to_string(batch) + " of " +
                                       std::to_string(rows()) + " rows");
    std::vector<std::pair<std::pair<double, std::uint64_t>, std::int64_t>>
        places;  // distance, then chance or row
    for (std::int64_t row = 0; row < rows(); ++row)
      places.push_back(
          {{std::abs(difficulties_[static_cast<std::size_t>(row)] - target_), chance(row)}, row});
    std::partial_sort(places.begin(), places.begin() + batch, places.end());
    std::vector<std::int64_t> nearest;
    for (std::int64_t i = 0; i < batch; ++i)
      nearest.push_back(places[static_cast<std::size_t>(i)].second);
    epoch_ = given_ / rows();
    given_ += batch;
    ++steps_;
    return nearest;
  }

  std::int64_t epoch() const override { return epoch_; }

  Status learn(std::span<const RowOutcome> outcomes) override {
    if (outcomes.empty()) return {};
    double sum = 0.0;
    for (const RowOutcome& outcome : outcomes) sum += outcome.score;
    target_ = next_target(target_, sum / static_cast<double>(outcomes.size()), options_);
    return {};
  }

  json position() const override {
    return {{"order", kAdaptiveKind}, {"rows", rows()},  {"seed", options_.seed},
            {"target", target_},      {"steps", steps_}, {"given", given_}};
  }

  Status resume(const json& position) override {
    const auto number = [&](const char* key) {
      return position.is_object() && position.contains(key) && position[key].is_number()
                 ? position[key].get<double>()
                 : -1.0;
    };
    if (!position.is_object() || position.value("order", json()) != kAdaptiveKind ||
        !position.contains("target") || number("steps") < 0 || number("given") < 0) {
      return runtime::invalid_argument(
          "the position in the data is not one of data.adarft: was the checkpoint made without "
          "it?");
    }
    if (position.value("rows", json()) != rows())
      return runtime::invalid_argument("the position in the data is of " +
                                       position.value("rows", json()).dump() +
                                       " rows, and there are " + std::to_string(rows()));
    if (position.value("seed", json()) != options_.seed)
      return runtime::invalid_argument("the position in the data is of another data.seed");
    target_ = std::clamp(number("target"), options_.difficulty_min, options_.difficulty_max);
    steps_ = position["steps"].get<std::int64_t>();
    given_ = position["given"].get<std::int64_t>();
    return {};
  }

 private:
  std::int64_t rows() const { return static_cast<std::int64_t>(difficulties_.size()); }

  // Who comes first of rows as far from the target: another one each step.
  std::uint64_t chance(std::int64_t row) const {
    if (!options_.shuffle) return static_cast<std::uint64_t>(row);
    const std::uint64_t step =
        SplitMix(SplitMix(options_.seed).next() ^ static_cast<std::uint64_t>(steps_)).next();
    return SplitMix(step ^ static_cast<std::uint64_t>(row)).next();
  }

  std::vector<double> difficulties_;
  AdaptiveOrderOptions options_;
  double target_;
  std::int64_t steps_ = 0;  // batches handed out
  std::int64_t given_ = 0;  // rows handed out
  std::int64_t epoch_ = 0;
};

}  // namespace

double next_target(double target, double mean_score, const AdaptiveOrderOptions& options) {
  return std::clamp(target + options.eta * std::tanh(options.alpha * (mean_score - options.beta)),
                    options.difficulty_min, options.difficulty_max);
}

Result<std::optional<AdaptiveOrderOptions>> AdaptiveOrderOptions::from_config(
    const Config& config) {
  const std::string section = "data.adarft.";
  const nlohmann::ordered_json* enabled = config.find(section + "enable");
  // Any text is true to Python, and AdaRFT's own script writes enable=enable.
  const bool is_on =
      enabled != nullptr && (enabled->is_string() ? !enabled->get<std::string>().empty()
                                                  : enabled->is_boolean() && enabled->get<bool>());
  if (!is_on) return std::optional<AdaptiveOrderOptions>();
  ConfigReader read(config);
  AdaptiveOrderOptions options;
  options.beta = read.find_float(section + "beta").value_or(options.beta);
  options.alpha = read.find_float(section + "alpha").value_or(options.alpha);
  options.eta = read.find_float(section + "eta").value_or(options.eta);
  options.difficulty_min = read.find_float(section + "d_min").value_or(options.difficulty_min);
  options.difficulty_max = read.find_float(section + "d_max").value_or(options.difficulty_max);
  options.shuffle = read.get_bool("data.shuffle");
  options.seed = static_cast<std::uint64_t>(
      read.find_int("data.seed").value_or(read.find_int("trainer.seed").value_or(0)));
  if (!read.status().ok()) return read.status();
  if (!(options.difficulty_min <= options.difficulty_max))
    return config.out_of_range(section + "d_max", "at least data.adarft.d_min");
  return std::optional(options);
}

Result<std::unique_ptr<RowOrder>> make_adaptive_order(const Dataset& dataset,
                                                      const AdaptiveOrderOptions& options) {
  std::vector<double> difficulties;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const Result<DataRow> row = dataset.read(i);
    if (!row.ok()) return row.status();
    if (!row->difficulty) {
      return runtime::invalid_argument(
          row->where +
          ": data.adarft needs a number `difficulty`, as a column or in extra_info, and the row "
          "has none; add one, or leave data.adarft.enable out");
    }
    difficulties.push_back(*row->difficulty);
  }
  return std::unique_ptr<RowOrder>(
      std::make_unique<AdaptiveOrder>(std::move(difficulties), options));
}

}  // namespace rl
