// The supervised stage: conversations and demonstrations, and beside them a teacher's
// distributions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rl/actor/sft_actor.h"
#include "rl/feed/supervised_feed.h"
#include "rl/run/data_stage.h"

namespace rl {

/// train/loss and val/loss are means over the tokens to learn, in nats; with a teacher train/loss
/// is distillation_loss, and train/kl and val/kl its second part. A resource; one thread at a time.
class SftStage : public DataStage {
 public:
  runtime::Status open(const StageSetup& setup) override;
  std::int64_t batches_per_epoch() const override { return feed_->rows().batches_per_epoch(); }
  runtime::Result<std::string> first_row() const override { return feed_->first_row(); }
  runtime::Status start(runtime::Runtime& runtime, const WorkerSlots& slots) override;
  std::vector<ProfiledGroup> profiled_groups() const override {
    return {profiled("worker", workers_)};
  }
  runtime::Status draw() override;
  runtime::Result<Metrics> step(double learning_rate) override;
  std::int64_t epoch() const override { return feed_->rows().epoch(); }
  std::vector<std::filesystem::path> frozen_models() const override;
  bool validates() const override { return validation_feed_ != nullptr; }
  runtime::Result<Metrics> validate() override;
  nlohmann::json position() const override { return feed_->rows().position(); }
  runtime::Status resume(const nlohmann::json& position) override {
    return feed_->rows().resume(position);
  }
  runtime::Result<WriteState> state(bool beside) const override { return workers_.state(beside); }
  runtime::Status load(const std::filesystem::path& folder) override;

 private:
  runtime::Status open_teacher();

  StageSetup setup_;
  std::filesystem::path teacher_;  // empty without distillation
  std::unique_ptr<SupervisedFeed> feed_;
  std::unique_ptr<SupervisedFeed> validation_feed_;  // null without validation data
  SupervisedStep drawn_;
  WorkerGroup<SftActor> workers_;
};

}  // namespace rl
