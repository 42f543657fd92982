#include "rl/run/feed_stage.h"

#include <cstdint>
#include <string>

#include "rl/model/model_config.h"

namespace rl {

runtime::Result<EncodedRowsOptions> feed_options(const StageSetup& setup) {
  const runtime::Result<ModelConfig> model = ModelConfig::load(setup.model);
  if (!model.ok()) return model.status();
  const std::int64_t leaves = setup.options.gradient_leaves;
  if (leaves > 0 && leaves < setup.workers) {
    return setup.config.out_of_range("trainer.gradient_leaves",
                                     "at least the " + std::to_string(setup.workers) +
                                         " workers, or some would have nothing to learn");
  }
  return EncodedRowsOptions{.model = setup.model,
                            .context = model->max_position_embeddings,
                            .vocabulary = model->vocab_size,
                            .batch_rows = setup.options.batch_rows,
                            .workers = setup.workers,
                            .leaves = leaves,
                            .shuffle = setup.options.shuffle,
                            .shuffle_seed = setup.options.shuffle_seed};
}

}  // namespace rl
