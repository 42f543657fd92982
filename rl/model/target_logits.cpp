#include "rl/model/target_logits.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rl/model/forward.h"
#include "rl/model/graph.h"
#include "rl/model/guarded.h"
#include "rl/model/ops.h"

namespace rl {
using runtime::Result;

namespace {

constexpr const char* kLogits = "logits";

}  // namespace

Result<at::Tensor> predicting_states(const Transformer& model, const PackedBatch& batch) {
  const ModelConfig& config = model.config();
  if (runtime::Status status = batch.validate(config.vocab_size, config.max_position_embeddings);
      !status.ok())
    return status;
  if (config.task != ModelTask::kCausalLm)
    return runtime::invalid_argument(
        "logits of a classifier: it has no output layer over the vocabulary");
  if (batch.targets.empty()) return runtime::invalid_argument("packed batch: no targets");
  return guarded<at::Tensor>(kLogits, [&] {
    // Texts to learn seldom begin alike, and what a row drops of an adapter must be its own.
    const auto rows = std::make_shared<const forward::Rows>(batch, model.rope(), /*share=*/false);
    const at::Tensor hidden = model.graph().hidden_states(
        rows, [&](std::int64_t, const forward::AttentionShape& shape, const at::Tensor& q,
                  const at::Tensor& k, const at::Tensor& v) {
          return ops::attention(model.pool(), rows, shape, q, k, v);
        });
    std::vector<std::int64_t> predicting;
    for (const std::int64_t target : batch.targets) predicting.push_back(target - 1);
    return model.graph().last_norm(ops::select_rows(hidden, predicting));
  });
}

Result<at::Tensor> state_logits(const Transformer& model, const at::Tensor& states) {
  return guarded<at::Tensor>(kLogits, [&] { return model.graph().trained_logits(states); });
}

}  // namespace rl
