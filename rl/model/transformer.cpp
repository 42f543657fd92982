#include "rl/model/transformer.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "rl/model/forward.h"
#include "rl/model/ops.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

using ops::Weight;
using runtime::Result;
using runtime::Status;

struct LayerWeights {
  Weight attention_norm;
  std::array<Weight, 3> qkv;
  Weight attention_out;
  Weight mlp_norm;
  std::array<Weight, 2> gate_up;
  Weight mlp_down;
};

// Runs `compute`, which may throw what ATen throws.
template <class T, class Compute>
Result<T> guarded(Compute compute) {
  try {
    return compute();
  } catch (const c10::OutOfMemoryError& error) {
    return runtime::resource_exhausted(std::string("model forward: ") + error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return runtime::resource_exhausted("model forward: out of memory");
  } catch (const c10::Error& error) {
    // The CPU allocator reports exhaustion as a plain error.
    const std::string what = error.what_without_backtrace();
    if (what.find("not enough memory") != std::string::npos) return runtime::resource_exhausted("model forward: " + what);
    return runtime::internal_error("model forward: " + what);
  }
}

// One block: x + attention(norm(x)), then x + mlp(norm(x)); Touvron et al. 2023, arXiv:2302.13971.
at::Tensor layer(kernel::ThreadPool& pool, const ModelConfig& config, const LayerWeights& w, const forward::RowsPtr& rows,
                 const at::Tensor& x) {
  const forward::AttentionShape shape{.heads = config.heads, .kv_heads = config.kv_heads, .head_dim = config.head_dim};
  std::vector<at::Tensor> qkv = ops::norm_linear(pool, x, w.attention_norm, config.rms_norm_eps, w.qkv);
  const at::Tensor q = ops::rope(pool, rows, std::exchange(qkv[0], {}), config.heads);
  const at::Tensor k = ops::rope(pool, rows, std::exchange(qkv[1], {}), config.kv_heads);
  const at::Tensor attended = ops::attention(pool, rows, shape, q, k, qkv[2]);
  const at::Tensor middle = ops::add(pool, x, ops::linear(pool, attended, std::span(&w.attention_out, 1)).front());
  const std::vector<at::Tensor> gate_up = ops::norm_linear(pool, middle, w.mlp_norm, config.rms_norm_eps, w.gate_up);
  return ops::add(pool, middle, ops::silu_mul_linear(pool, gate_up[0], gate_up[1], w.mlp_down));
}

}  // namespace

struct Transformer::Weights {
  Weight embedding;
  std::vector<LayerWeights> layers;
  Weight last_norm;
  Weight lm_head;  // the embedding when tied: both uses add to one gradient
};

Transformer::Transformer(ModelConfig config, Parameters parameters, const TransformerOptions& options)
    : config_(std::move(config)),
      parameters_(std::move(parameters)),
      rope_(config_.rope, config_.head_dim),
      pool_(std::make_unique<kernel::ThreadPool>(options.threads > 0 ? options.threads : at::get_num_threads())) {
  bind_weights();
}

Transformer::~Transformer() = default;

Result<std::unique_ptr<Transformer>> Transformer::load(const std::filesystem::path& model, const TransformerOptions& options) {
  Result<ModelConfig> config = ModelConfig::load(model);
  if (!config.ok()) return config.status();
  Result<Parameters> parameters = Parameters::load(*config, model);
  if (!parameters.ok()) return parameters.status();
  return std::make_unique<Transformer>(std::move(*config), std::move(*parameters), options);
}

void Transformer::bind_weights() {
  const auto weight = [&](const std::string& name) {
    return Weight{parameters_.view(name), gradients_ ? gradients_->view(name) : at::Tensor()};
  };
  auto weights = std::make_unique<Weights>();
  weights->embedding = weight("model.embed_tokens.weight");
  for (std::int64_t i = 0; i < config_.layers; ++i) {
    const std::string prefix = "model.layers." + std::to_string(i) + ".";
    weights->layers.push_back({
        .attention_norm = weight(prefix + "input_layernorm.weight"),
        .qkv = {weight(prefix + "self_attn.q_proj.weight"), weight(prefix + "self_attn.k_proj.weight"),
                weight(prefix + "self_attn.v_proj.weight")},
        .attention_out = weight(prefix + "self_attn.o_proj.weight"),
        .mlp_norm = weight(prefix + "post_attention_layernorm.weight"),
        .gate_up = {weight(prefix + "mlp.gate_proj.weight"), weight(prefix + "mlp.up_proj.weight")},
        .mlp_down = weight(prefix + "mlp.down_proj.weight"),
    });
  }
  weights->last_norm = weight("model.norm.weight");
  weights->lm_head = config_.tie_word_embeddings ? weights->embedding : weight("lm_head.weight");
  weights_ = std::move(weights);
}

void Transformer::enable_gradients() {
  if (gradients_) return;
  Parameters gradients = Parameters::zeros(config_);
  if (!parameters_.arena().device().is_cpu()) gradients = gradients.to(parameters_.arena().device());
  gradients_ = std::move(gradients);
  bind_weights();
}

const Parameters& Transformer::gradients() const {
  CHECK(gradients_.has_value());
  return *gradients_;
}

void Transformer::zero_gradients() {
  CHECK(gradients_.has_value());
  gradients_->arena().zero_();
}

at::Tensor Transformer::hidden_states(const PackedBatch& batch) const {
  const auto rows = std::make_shared<const forward::Rows>(batch, rope_);
  at::Tensor x = ops::embedding(*pool_, weights_->embedding, rows->ids, gradients_enabled());
  for (const LayerWeights& weights : weights_->layers) x = layer(*pool_, config_, weights, rows, x);
  return x;
}

Result<TokenLogprobs> Transformer::token_logprobs(const PackedBatch& batch, const LogprobOptions& options) const {
  if (Status status = batch.validate(config_.vocab_size, config_.max_position_embeddings); !status.ok()) return status;
  if (!(options.temperature > 0.0F) || !std::isfinite(options.temperature)) {
    return runtime::invalid_argument("temperature " + std::to_string(options.temperature) + " must be above 0");
  }
  CHECK(options.logit_rows_max > 0);
  if (batch.targets.empty()) return runtime::invalid_argument("packed batch: no targets");
  return guarded<TokenLogprobs>([&] {
    std::vector<std::int64_t> predicting;
    std::vector<std::int32_t> targets;
    for (const std::int64_t target : batch.targets) {
      predicting.push_back(target - 1);
      targets.push_back(batch.ids[static_cast<std::size_t>(target)]);
    }
    const at::Tensor selected = ops::select_rows(hidden_states(batch), predicting);
    const at::Tensor normed = ops::rms_norm(*pool_, selected, weights_->last_norm, config_.rms_norm_eps);
    const ops::LmHeadOptions head{.temperature = options.temperature,
                                  .with_entropy = options.with_entropy,
                                  .rows_max = options.logit_rows_max,
                                  .kept_bytes_max = options.kept_bytes_max};
    auto [logprobs, entropy] = ops::lm_head_logprobs(*pool_, normed, weights_->lm_head, targets, head);
    return TokenLogprobs{std::move(logprobs), std::move(entropy)};
  });
}

Result<at::Tensor> Transformer::logits(const PackedBatch& batch) const {
  if (Status status = batch.validate(config_.vocab_size, config_.max_position_embeddings); !status.ok()) return status;
  return guarded<at::Tensor>([&] {
    const at::Tensor normed = ops::rms_norm(*pool_, hidden_states(batch), weights_->last_norm, config_.rms_norm_eps);
    return ops::linear(*pool_, normed, std::span(&weights_->lm_head, 1)).front();
  });
}

}  // namespace rl
