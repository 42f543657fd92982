#include "rl/run/feed_stage.h"

#include <cstdint>

#include "rl/model/model_config.h"
#include "rl/run/gradient_leaves.h"

namespace rl {

runtime::Result<EncodedRowsOptions> feed_options(const StageSetup& setup) {
  const runtime::Result<ModelConfig> model = ModelConfig::load(setup.model);
  if (!model.ok()) return model.status();
  const std::int64_t leaves = setup.options.gradient_leaves;
  if (const runtime::Status fits = check_gradient_leaves(setup.config, leaves, setup.workers);
      !fits.ok())
    return fits;
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
