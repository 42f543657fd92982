#include "rl/optim/muon.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/core/check.h"

namespace rl {
namespace {

// Of the quintic a x + b x^3 + c x^5, chosen for its slope at 0.
constexpr double kA = 3.4445;
constexpr double kB = -4.7750;
constexpr double kC = 2.0315;
constexpr double kNormMin = 1e-7;

std::vector<ArenaRange> ranges_of(const std::vector<ArenaMatrix>& matrices) {
  std::vector<ArenaRange> ranges;
  for (const ArenaMatrix& matrix : matrices)
    ranges.push_back({matrix.offset, matrix.offset + matrix.rows * matrix.columns});
  return ranges;
}

}  // namespace

void orthogonalize(std::span<float> matrix, std::int64_t rows, std::int64_t columns,
                   int iterations) {
  CHECK(static_cast<std::int64_t>(matrix.size()) == rows * columns);
  const at::NoGradGuard no_grad;
  at::Tensor whole = at::from_blob(matrix.data(), {rows, columns}, at::kFloat);
  // The products are as wide as the shorter side.
  at::Tensor x = rows > columns ? whole.t() : whole;
  x = x / x.norm().clamp_min(kNormMin);
  for (int i = 0; i < iterations; ++i) {
    const at::Tensor gram = at::mm(x, x.t());
    x = at::addmm(x, at::addmm(gram, gram, gram, kB, kC), x, kA, 1.0);
  }
  whole.copy_(rows > columns ? x.t() : x);
}

Muon::Muon(std::int64_t size, std::vector<ArenaMatrix> matrices,
           const std::vector<ArenaRange>& decayed, const MuonOptions& options,
           const AdamWOptions& adamw)
    : matrices_(std::move(matrices)),
      options_(options),
      rest_(size, decayed, adamw, ranges_of(matrices_)) {}

void Muon::set_steps(std::int64_t steps) {
  steps_ = steps;
  rest_.set_steps(steps);
}

void Muon::step(kernel::ThreadPool& pool, std::span<float> parameters,
                std::span<const float> gradients, float learning_rate, float gradient_scale) {
  rest_.step(pool, parameters, gradients, learning_rate, gradient_scale);
  ++steps_;
  std::vector<float> update;
  for (const ArenaMatrix& matrix : matrices_) {
    const auto begin = static_cast<std::size_t>(matrix.offset);
    const auto count = static_cast<std::size_t>(matrix.rows * matrix.columns);
    const std::span<float> momentum = rest_.first_moment().subspan(begin, count);
    update.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      const float gradient = gradients[begin + i] * gradient_scale;
      momentum[i] += (1.0F - options_.momentum) * (gradient - momentum[i]);
      update[i] =
          options_.nesterov ? gradient + options_.momentum * (momentum[i] - gradient) : momentum[i];
    }
    orthogonalize(update, matrix.rows, matrix.columns, options_.iterations);
    const double rows = static_cast<double>(matrix.rows);
    const double columns = static_cast<double>(matrix.columns);
    const double ratio = options_.match_adamw ? 0.2 * std::sqrt(std::max(rows, columns))
                                              : std::sqrt(std::max(1.0, rows / columns));
    const float size = static_cast<float>(learning_rate * ratio);
    const float keep = 1.0F - learning_rate * options_.weight_decay;
    for (std::size_t i = 0; i < count; ++i)
      parameters[begin + i] = parameters[begin + i] * keep - size * update[i];
  }
}

}  // namespace rl
