#include "rl/model/rope.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "rl/kernel/rope.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

// Llama 3.1's ramp: wavelengths shorter than context / high_freq_factor stay, longer than context / low_freq_factor are divided
// by `factor`, in between the two are blended. Single precision in this order, as the reference computes it.
float llama3_frequency(float frequency, const RopeConfig& config) {
  const auto context = static_cast<double>(config.original_max_position_embeddings);
  const float wavelength = static_cast<float>(2.0 * M_PI) / frequency;
  if (wavelength < static_cast<float>(context / config.high_freq_factor)) return frequency;
  const float slowed = frequency / static_cast<float>(config.factor);
  if (wavelength > static_cast<float>(context / config.low_freq_factor)) return slowed;
  const float smooth = (static_cast<float>(context) / wavelength - static_cast<float>(config.low_freq_factor)) /
                       static_cast<float>(config.high_freq_factor - config.low_freq_factor);
  return (1.0F - smooth) * slowed + smooth * frequency;
}

}  // namespace

Rope::Rope(const RopeConfig& config, std::int64_t head_dim) {
  CHECK(head_dim > 0 && head_dim % 2 == 0);
  inverse_frequencies_.reserve(static_cast<std::size_t>(head_dim / 2));
  for (std::int64_t i = 0; i < head_dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(head_dim);
    float frequency = 1.0F / std::pow(static_cast<float>(config.theta), exponent);
    switch (config.kind) {
      case RopeConfig::Kind::kDefault: break;
      case RopeConfig::Kind::kLinear: frequency /= static_cast<float>(config.factor); break;
      case RopeConfig::Kind::kLlama3: frequency = llama3_frequency(frequency, config); break;
    }
    inverse_frequencies_.push_back(frequency);
  }
}

std::shared_ptr<const RopeTables> Rope::tables(std::int64_t positions) const {
  std::lock_guard lock(mutex_);
  if (tables_ && tables_->positions >= positions) return tables_;
  // Rounded up generously: batches of growing length shall not rebuild the tables each time.
  auto tables = std::make_shared<RopeTables>();
  tables->positions = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(positions, 256))));
  tables->cos.resize(static_cast<std::size_t>(tables->positions * half_dim()));
  tables->sin.resize(tables->cos.size());
  kernel::rope_tables(inverse_frequencies_, tables->positions, 1.0F, tables->cos.data(), tables->sin.data());
  tables_ = tables;
  return tables_;
}

}  // namespace rl
