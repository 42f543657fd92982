#include "rl/app/sft.h"

#include "rl/app/stage_command.h"
#include "rl/config/stage_keys.h"
#include "rl/run/sft/sft_stage.h"

namespace rl {

int sft_command(runtime::Runtime& runtime, int argc, char** argv) {
  const StageCommand command{
      .keys = sft_keys(),
      .description =
          "Learns the answers of conversations and demonstrations (supervised fine-tuning).",
      .example =
          "starling sft data.dataset_name=toy data.train_batch_size=32 model.path=toy "
          "data.max_length=64 optim.lr=1e-3 trainer.total_training_steps=20",
      .make = [] { return std::make_unique<SftStage>(); }};
  return run_stage_command(runtime, command, argc, argv);
}

}  // namespace rl
