#include "rl/plan/flops.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>

#include "rl/model/device.h"
#include "rl/model/guarded.h"
#include "rl/plan/memory_plan.h"

namespace rl {
namespace {

// Weights that a token is multiplied with.
double active_weights(const ModelConfig& config) {
  std::int64_t weights = weight_elements(config);
  if (!config.tie_word_embeddings)
    weights -= config.vocab_size * config.embedding_width();  // rows of the table are looked up
  weights -= config.learned_positions * config.hidden_size;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    if (config.has_experts(layer))
      weights -= (config.moe->experts - config.moe->experts_per_token) * 3 * config.hidden_size *
                 config.moe->intermediate_size;
  }
  return static_cast<double>(weights);
}

// Products of the matrix with itself, operations a second.
double best_of_three(const at::Tensor& matrix) {
  const auto size = static_cast<double>(matrix.size(0));
  double best = 0.0;
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    at::mm(matrix, matrix)[0][0].item<float>();  // which waits for it
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best = std::max(best, 2.0 * size * size * size / std::max(took.count(), 1e-9));
  }
  return best;
}

}  // namespace

double training_flops(const ModelConfig& config, std::span<const std::int64_t> lengths) {
  double tokens = 0.0, squares = 0.0;
  for (const std::int64_t length : lengths) {
    tokens += static_cast<double>(length);
    squares += static_cast<double>(length) * static_cast<double>(length);
  }
  return 6.0 * active_weights(config) * tokens +
         12.0 * squares * static_cast<double>(config.query_size() * config.layers);
}

double measured_peak_flops(c10::Device device, bool bf16) {
  if (!device.is_cpu() && !device.is_cuda()) return 0.0;
  const auto best = guarded<double>("measuring the device's peak", [&] {
    const at::NoGradGuard no_grad;
    const std::int64_t size = device.is_cuda() ? 8192 : 768;
    return best_of_three(
        at::ones({size, size}, at::TensorOptions(device).dtype(bf16 ? at::kBFloat16 : at::kFloat)));
  });
  if (!device.is_cpu()) release_cached_memory(device);  // half a GB, for once
  return best.value_or(0.0);
}

}  // namespace rl
