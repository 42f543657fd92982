#include "rl/model/rope.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "rl/kernel/rope.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

// A sequence that grows by a token a step would otherwise leave its tables behind at each.
constexpr std::size_t kTablesMax = 8;

// Llama 3.1's ramp: wavelengths shorter than context / high_freq_factor stay, longer than context /
// low_freq_factor are divided by `factor`, in between the two are blended. Single precision in this
// order, as the reference computes it.
float llama3_frequency(float frequency, const RopeConfig& config) {
  const auto context = static_cast<double>(config.original_max_position_embeddings);
  const float wavelength = static_cast<float>(2.0 * M_PI) / frequency;
  if (wavelength < static_cast<float>(context / config.high_freq_factor)) return frequency;
  const float slowed = frequency / static_cast<float>(config.factor);
  if (wavelength > static_cast<float>(context / config.low_freq_factor)) return slowed;
  const float smooth =
      (static_cast<float>(context) / wavelength - static_cast<float>(config.low_freq_factor)) /
      static_cast<float>(config.high_freq_factor - config.low_freq_factor);
  return (1.0F - smooth) * slowed + smooth * frequency;
}

// YaRN: pairs that make more than beta_fast turns within the original context stay. Those with
// fewer than beta_slow are divided by `factor`. Between them lies a ramp over the dimensions.
float yarn_frequency(float frequency, std::int64_t pair, std::int64_t rotary_dim,
                     const RopeConfig& config) {
  const auto dimension_of = [&](double turns) {
    return static_cast<double>(rotary_dim) *
           std::log(static_cast<double>(config.original_max_position_embeddings) /
                    (turns * 2.0 * M_PI)) /
           (2.0 * std::log(config.theta));
  };
  double low = dimension_of(config.beta_fast);
  double high = dimension_of(config.beta_slow);
  if (config.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rotary_dim - 1));
  if (low == high) high += 0.001;
  const auto ramp =
      static_cast<float>(std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0));
  return frequency / static_cast<float>(config.factor) * ramp + frequency * (1.0F - ramp);
}

}  // namespace

Rope::Rope(const RopeConfig& config, std::int64_t rotary_dim)
    : config_(config), rotary_dim_(rotary_dim) {
  CHECK(rotary_dim >= 0 && rotary_dim % 2 == 0);
}

std::int64_t Rope::stretch_of(std::int64_t length) const {
  const bool is_long = config_.original_max_position_embeddings > 0 &&
                       length > config_.original_max_position_embeddings;
  if (config_.kind == RopeConfig::Kind::kDynamic) return is_long ? length : 0;
  return config_.kind == RopeConfig::Kind::kLongRope && is_long ? 1 : 0;
}

std::vector<float> Rope::inverse_frequencies(std::int64_t stretch) const {
  double theta = config_.theta;
  if (config_.kind == RopeConfig::Kind::kDynamic && stretch > 0) {
    const double grown = static_cast<double>(stretch) /
                         static_cast<double>(config_.original_max_position_embeddings);
    const auto dim = static_cast<double>(rotary_dim_);
    theta *= std::pow(config_.factor * grown - (config_.factor - 1.0), dim / (dim - 2.0));
  }
  std::vector<float> frequencies;
  frequencies.reserve(static_cast<std::size_t>(half_dim()));
  for (std::int64_t pair = 0; pair < half_dim(); ++pair) {
    const float exponent = static_cast<float>(2 * pair) / static_cast<float>(rotary_dim_);
    float frequency = 1.0F / std::pow(static_cast<float>(theta), exponent);
    switch (config_.kind) {
      case RopeConfig::Kind::kDefault:
      case RopeConfig::Kind::kDynamic: break;
      case RopeConfig::Kind::kLinear: frequency /= static_cast<float>(config_.factor); break;
      case RopeConfig::Kind::kLlama3: frequency = llama3_frequency(frequency, config_); break;
      case RopeConfig::Kind::kYarn:
        frequency = yarn_frequency(frequency, pair, rotary_dim_, config_);
        break;
      case RopeConfig::Kind::kLongRope:
        frequency = 1.0F / ((stretch > 0 ? config_.long_factors
                                         : config_.short_factors)[static_cast<std::size_t>(pair)] *
                            std::pow(static_cast<float>(theta), exponent));
        break;
    }
    frequencies.push_back(frequency);
  }
  return frequencies;
}

std::shared_ptr<const RopeTables> Rope::tables(std::int64_t positions, std::int64_t stretch) const {
  std::lock_guard lock(mutex_);
  const auto found = tables_.find(stretch);
  if (found != tables_.end() && found->second->positions >= positions) return found->second;
  // Rounded up generously: batches of growing length shall not rebuild the tables each time.
  auto tables = std::make_shared<RopeTables>();
  tables->half = half_dim();
  tables->positions = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(positions, 256))));
  tables->cos.resize(static_cast<std::size_t>(tables->positions * half_dim()));
  tables->sin.resize(tables->cos.size());
  const bool tempered =
      config_.kind == RopeConfig::Kind::kYarn || config_.kind == RopeConfig::Kind::kLongRope;
  kernel::rope_tables(inverse_frequencies(stretch), tables->positions,
                      tempered ? static_cast<float>(config_.attention_factor) : 1.0F,
                      tables->cos.data(), tables->sin.data());
  if (tables_.size() >= kTablesMax) tables_.erase(std::prev(tables_.end()));
  tables_[stretch] = tables;
  return tables;
}

}  // namespace rl
