// The supervised stage: conversations and demonstrations, and next to them a teacher's
// distributions.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "rl/actor/sft_actor.h"
#include "rl/feed/supervised_feed.h"
#include "rl/run/feed_stage.h"

namespace rl {

/// train/loss and val/loss are means over the tokens to learn, in nats; with a teacher train/loss
/// is distillation_loss, and train/kl and val/kl its second part. A resource; one thread at a time.
class SftStage : public FeedStage<SupervisedFeed, SftActor> {
 public:
  runtime::Status open(const StageSetup& setup) override;
  std::vector<std::filesystem::path> frozen_models() const override;
  runtime::Result<std::string> first_row() const override { return feed_->first_row(); }
  RowLengths row_lengths() const override { return feed_->row_lengths(); }
  runtime::Status start(runtime::Runtime& runtime, const StageSetup& setup,
                        const WorkerSlots& slots) override;
  runtime::Result<Metrics> step(double learning_rate) override;
  runtime::Result<Metrics> validate() override;

 private:
  runtime::Status open_teacher();

  std::filesystem::path teacher_;  // empty without distillation
};

}  // namespace rl
