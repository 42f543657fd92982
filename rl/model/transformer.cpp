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
#include "rl/model/graph.h"
#include "rl/model/ops.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

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

}  // namespace

Transformer::Transformer(ModelConfig config, Parameters parameters, const TransformerOptions& options)
    : config_(std::move(config)),
      parameters_(std::move(parameters)),
      rope_(config_.rope, config_.rotated()),
      pool_(std::make_unique<kernel::ThreadPool>(options.threads > 0 ? options.threads : at::get_num_threads())),
      graph_(std::make_unique<Graph>(config_, parameters_, nullptr, *pool_)) {}

Transformer::~Transformer() = default;

Result<std::unique_ptr<Transformer>> Transformer::load(const std::filesystem::path& model, const TransformerOptions& options) {
  Result<ModelConfig> config = ModelConfig::load(model);
  if (!config.ok()) return config.status();
  Result<Parameters> parameters = Parameters::load(*config, model);
  if (!parameters.ok()) return parameters.status();
  return std::make_unique<Transformer>(std::move(*config), std::move(*parameters), options);
}

void Transformer::enable_gradients() {
  if (gradients_) return;
  Parameters gradients = Parameters::zeros(config_);
  if (!parameters_.arena().device().is_cpu()) gradients = gradients.to(parameters_.arena().device());
  gradients_ = std::move(gradients);
  graph_ = std::make_unique<Graph>(config_, parameters_, &*gradients_, *pool_);
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
  return graph_->hidden_states(rows, [&](std::int64_t, const forward::AttentionShape& shape, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    return ops::attention(*pool_, rows, shape, q, k, v);
  });
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
    const at::Tensor normed = graph_->last_norm(ops::select_rows(hidden_states(batch), predicting));
    auto [logprobs, entropy] =
        graph_->logprobs(normed, targets, options.temperature, options.with_entropy, options.logit_rows_max, options.kept_bytes_max);
    return TokenLogprobs{std::move(logprobs), std::move(entropy)};
  });
}

Result<at::Tensor> Transformer::logits(const PackedBatch& batch) const {
  if (Status status = batch.validate(config_.vocab_size, config_.max_position_embeddings); !status.ok()) return status;
  return guarded<at::Tensor>([&] {
    return graph_->logits(graph_->last_norm(hidden_states(batch)));
  });
}

}  // namespace rl
