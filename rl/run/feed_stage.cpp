#include "rl/run/feed_stage.h"

#include "rl/model/model_config.h"

namespace rl {

runtime::Result<EncodedRowsOptions> feed_options(const StageSetup& setup) {
  const runtime::Result<ModelConfig> model = ModelConfig::load(setup.model);
  if (!model.ok()) return model.status();
  return EncodedRowsOptions{.model = setup.model,
                            .context = model->max_position_embeddings,
                            .vocabulary = model->vocab_size,
                            .batch_rows = setup.options.batch_rows,
                            .workers = setup.workers,
                            .shuffle = setup.options.shuffle,
                            .shuffle_seed = setup.options.shuffle_seed};
}

}  // namespace rl
