#include "rl/optim/sgd.h"

#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr std::int64_t kSgdChunk = std::int64_t{1} << 16;

}  // namespace

Sgd::Sgd(std::int64_t size, const std::vector<ArenaRange>& decayed, const SgdOptions& options)
    : ranges_(decay_ranges(size, decayed)),
      options_(options),
      momentum_(options.momentum != 0.0F ? static_cast<std::size_t>(size) : 0),
      size_(size) {}

runtime::Status Sgd::step(kernel::ThreadPool& pool, std::span<float> parameters,
                          std::span<const float> gradients, float learning_rate,
                          float gradient_scale) {
  CHECK(static_cast<std::int64_t>(parameters.size()) == size_);
  CHECK(static_cast<std::int64_t>(gradients.size()) == size_);
  // The buffer begins as the first gradient: its zeros are not averaged in.
  const float keep = steps_ == 0 ? 0.0F : options_.momentum;
  ++steps_;
  for (const DecayRange& range : ranges_) {
    const float decay = range.decays ? options_.weight_decay : 0.0F;
    pool.parallel_for(range.range.size(), kSgdChunk, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(range.range.begin + begin);
           i < static_cast<std::size_t>(range.range.begin + end); ++i) {
        float update = gradients[i] * gradient_scale + decay * parameters[i];
        if (!momentum_.empty()) {
          momentum_[i] = keep * momentum_[i] + update;
          update = options_.nesterov ? update + options_.momentum * momentum_[i] : momentum_[i];
        }
        parameters[i] -= learning_rate * update;
      }
    });
  }
  return {};
}

std::vector<OptimizerState> Sgd::state() {
  if (momentum_.empty()) return {};
  return {{"momentum_buffer", momentum_}};
}

}  // namespace rl
