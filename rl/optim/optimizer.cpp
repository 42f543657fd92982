#include "rl/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "rl/kernel/isa.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr std::int64_t kLanes = 16;  // floats in the widest register; parameters are aligned to it
constexpr std::int64_t kChunk = std::int64_t{1}
                                << 16;  // elements per unit of work: 1 MiB over four arenas

struct StepConstants {
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float keep;               // 1 - lr * decay
  float step_size;          // lr / (1 - beta1^t)
  float inverse_sqrt_bias;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
  float gradient_scale;
};

// Written once and compiled for each instruction set: the inner loop has a constant trip count,
// which g++ vectorises at -O2.
[[gnu::always_inline]] inline void update_lanes(const StepConstants& c, float* __restrict w,
                                                const float* __restrict g, float* __restrict m,
                                                float* __restrict v, std::int64_t count) {
  for (std::int64_t lane = 0; lane < count; ++lane) {
    const float gradient = g[lane] * c.gradient_scale;
    const float first = c.beta1 * m[lane] + c.one_minus_beta1 * gradient;
    const float second = c.beta2 * v[lane] + c.one_minus_beta2 * gradient * gradient;
    m[lane] = first;
    v[lane] = second;
    w[lane] = w[lane] * c.keep -
              c.step_size * first / (std::sqrt(second) * c.inverse_sqrt_bias + c.epsilon);
  }
}

[[gnu::always_inline]] inline void update_range(const StepConstants& c, float* w, const float* g,
                                                float* m, float* v, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) update_lanes(c, w + i, g + i, m + i, v + i, kLanes);
  update_lanes(c, w + i, g + i, m + i, v + i, count - i);
}

[[gnu::always_inline]] inline double square_sum(const float* x, std::int64_t count) {
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = x[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (; i < count; ++i) lanes[i % kLanes] += static_cast<double>(x[i]) * x[i];
  return std::accumulate(lanes, lanes + kLanes, 0.0);
}

using UpdateFunction = void (*)(const StepConstants&, float*, const float*, float*, float*,
                                std::int64_t);
using SquareSumFunction = double (*)(const float*, std::int64_t);

void update_portable(const StepConstants& c, float* w, const float* g, float* m, float* v,
                     std::int64_t n) {
  update_range(c, w, g, m, v, n);
}
double square_sum_portable(const float* x, std::int64_t n) { return square_sum(x, n); }

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void update_avx2(const StepConstants& c, float* w, const float* g,
                                             float* m, float* v, std::int64_t n) {
  update_range(c, w, g, m, v, n);
}
[[gnu::target("avx512f,avx512dq,avx512vl,fma")]] void update_avx512(const StepConstants& c,
                                                                    float* w, const float* g,
                                                                    float* m, float* v,
                                                                    std::int64_t n) {
  update_range(c, w, g, m, v, n);
}
[[gnu::target("avx2,fma")]] double square_sum_avx2(const float* x, std::int64_t n) {
  return square_sum(x, n);
}
[[gnu::target("avx512f,avx512dq,avx512vl,fma")]] double square_sum_avx512(const float* x,
                                                                          std::int64_t n) {
  return square_sum(x, n);
}
#endif

UpdateFunction pick_update() {
#if defined(__x86_64__)
  switch (kernel::current_isa()) {
    case kernel::Isa::kAvx512: return update_avx512;
    case kernel::Isa::kAvx2: return update_avx2;
    case kernel::Isa::kPortable: break;
  }
#endif
  return update_portable;
}

SquareSumFunction pick_square_sum() {
#if defined(__x86_64__)
  switch (kernel::current_isa()) {
    case kernel::Isa::kAvx512: return square_sum_avx512;
    case kernel::Isa::kAvx2: return square_sum_avx2;
    case kernel::Isa::kPortable: break;
  }
#endif
  return square_sum_portable;
}

}  // namespace

void AdamW::Free::operator()(float* memory) const { std::free(memory); }

AdamW::Buffer AdamW::zeros(std::int64_t size) {
  const std::size_t bytes = (static_cast<std::size_t>(size) * sizeof(float) + 63) / 64 * 64;
  auto* memory = static_cast<float*>(std::aligned_alloc(64, std::max<std::size_t>(bytes, 64)));
  CHECK(memory != nullptr);
  std::memset(memory, 0, bytes);
  return Buffer(memory);
}

std::vector<DecayRange> decay_ranges(std::int64_t size, const std::vector<ArenaRange>& decayed,
                                     const std::vector<ArenaRange>& skipped) {
  for (const auto* ranges : {&decayed, &skipped}) {
    std::int64_t position = 0;
    for (const ArenaRange& range : *ranges) {
      CHECK(range.begin >= position);
      CHECK(range.end >= range.begin);
      position = range.end;
    }
    CHECK(position <= size);
  }
  std::vector<std::int64_t> borders{0, size};
  for (const auto* ranges : {&decayed, &skipped}) {
    for (const ArenaRange& range : *ranges) borders.insert(borders.end(), {range.begin, range.end});
  }
  std::sort(borders.begin(), borders.end());
  const auto inside = [](const std::vector<ArenaRange>& ranges, std::int64_t place) {
    const auto after = std::upper_bound(
        ranges.begin(), ranges.end(), place,
        [](std::int64_t value, const ArenaRange& range) { return value < range.end; });
    return after != ranges.end() && after->begin <= place;
  };
  std::vector<DecayRange> cut;
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    const ArenaRange range{borders[i], borders[i + 1]};
    if (range.size() > 0 && !inside(skipped, range.begin))
      cut.push_back({range, inside(decayed, range.begin)});
  }
  return cut;
}

AdamW::AdamW(std::int64_t size, const std::vector<ArenaRange>& decayed, const AdamWOptions& options,
             const std::vector<ArenaRange>& skipped)
    : size_(size),
      ranges_(decay_ranges(size, decayed, skipped)),
      options_(options),
      first_(zeros(size)),
      second_(zeros(size)) {}

runtime::Status AdamW::step(kernel::ThreadPool& pool, std::span<float> parameters,
                            std::span<const float> gradients, float learning_rate,
                            float gradient_scale) {
  CHECK(static_cast<std::int64_t>(parameters.size()) == size_);
  CHECK(static_cast<std::int64_t>(gradients.size()) == size_);
  ++steps_;
  // Bias corrections in double: 1 - 0.999^1 loses four digits in float.
  const double bias1 =
      1.0 - std::pow(static_cast<double>(options_.beta1), static_cast<double>(steps_));
  const double bias2 =
      1.0 - std::pow(static_cast<double>(options_.beta2), static_cast<double>(steps_));
  StepConstants constants{
      .beta1 = options_.beta1,
      .one_minus_beta1 = static_cast<float>(1.0 - static_cast<double>(options_.beta1)),
      .beta2 = options_.beta2,
      .one_minus_beta2 = static_cast<float>(1.0 - static_cast<double>(options_.beta2)),
      .keep = 1.0F,
      .step_size = static_cast<float>(learning_rate / bias1),
      .inverse_sqrt_bias = static_cast<float>(1.0 / std::sqrt(bias2)),
      .epsilon = options_.epsilon,
      .gradient_scale = gradient_scale};
  const UpdateFunction update = pick_update();
  for (const auto& [range, decays] : ranges_) {
    constants.keep = decays ? 1.0F - learning_rate * options_.weight_decay : 1.0F;
    const std::int64_t first = range.begin;
    pool.parallel_for(range.size(), kChunk, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t offset = first + begin;
      update(constants, parameters.data() + offset, gradients.data() + offset,
             first_.get() + offset, second_.get() + offset, end - begin);
    });
  }
  return {};
}

std::vector<double> square_sums(kernel::ThreadPool& pool, std::span<const float> values) {
  const auto size = static_cast<std::int64_t>(values.size());
  const std::int64_t chunks = (size + kNormChunk - 1) / kNormChunk;
  std::vector<double> sums(static_cast<std::size_t>(chunks));
  const SquareSumFunction sum = pick_square_sum();
  // A chunk's sum and the order of the chunks are fixed, whichever thread takes which.
  pool.parallel_for(chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
      const std::int64_t offset = chunk * kNormChunk;
      sums[static_cast<std::size_t>(chunk)] =
          sum(values.data() + offset, std::min(kNormChunk, size - offset));
    }
  });
  return sums;
}

double norm_of(std::span<const double> square_sums) {
  return std::sqrt(std::accumulate(square_sums.begin(), square_sums.end(), 0.0));
}

double l2_norm(kernel::ThreadPool& pool, std::span<const float> values) {
  return norm_of(square_sums(pool, values));
}

double clip_factor(double norm, double norm_max) {
  if (norm_max <= 0.0) return 1.0;
  return std::min(1.0, norm_max / (norm + 1e-6));
}

}  // namespace rl
