#include "rl/app/preference.h"

#include "rl/app/stage_command.h"
#include "rl/config/stage_keys.h"
#include "rl/run/preference/preference_stage.h"

namespace rl {
namespace {

std::unique_ptr<DataStage> make_stage() { return std::make_unique<PreferenceStage>(); }

std::string example(const std::string& command) {
  return "starling " + command +
         " data.dataset_name=toy data.train_batch_size=32 model.path=toy data.max_length=64 "
         "optim.lr=1e-3 trainer.total_training_steps=20";
}

}  // namespace

int dpo_command(runtime::Runtime& runtime, int argc, char** argv) {
  const StageCommand command{.keys = dpo_keys(),
                             .description =
                                 "Learns from pairs of a chosen and a rejected response: DPO, IPO, "
                                 "hinge, SPPO, ORPO, SimPO (preference.loss).",
                             .example = example("dpo"),
                             .make = make_stage};
  return run_stage_command(runtime, command, argc, argv);
}

int kto_command(runtime::Runtime& runtime, int argc, char** argv) {
  const StageCommand command{
      .keys = kto_keys(),
      .description =
          "Learns from single responses that are wanted or not (KTO); of pairs both count.",
      .example = example("kto"),
      .make = make_stage};
  return run_stage_command(runtime, command, argc, argv);
}

int rm_command(runtime::Runtime& runtime, int argc, char** argv) {
  const StageCommand command{
      .keys = rm_keys(),
      .description =
          "Trains a reward model from pairs of a chosen and a rejected response (Bradley-Terry).",
      .example = example("rm"),
      .make = make_stage,
      .generates = false};
  return run_stage_command(runtime, command, argc, argv);
}

}  // namespace rl
