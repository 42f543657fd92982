// A driver built against the installed package: some steps with a call-back, a checkpoint, and the
// same numbers again from it. The custom loss and advantages are chosen by their names, as
// those are that the package has.
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/relu.h>

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "rl/rl.h"
#include "runtime/runtime.h"

// PPO's loss `band_scale` times, and what is far from the old policy costs. All tokens count as
// held back, so that a metric tells who was called.
rl::PolicyLoss band_loss(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT,
                         const at::Tensor& advantages_BT, const at::Tensor& mask_BT,
                         const rl::PolicyLossOptions& options) {
  const at::Tensor ratio_BT = rl::importance_ratio(logprobs_BT, old_logprobs_BT);
  rl::PolicyLoss out = rl::clipped_surrogate(ratio_BT, advantages_BT, options.clip);
  out.loss_BT = (out.loss_BT + at::relu((ratio_BT - 1).abs() - options.numbers.at("band_width"))) *
                options.numbers.at("band_scale");
  out.clipped_BT = at::ones_like(mask_BT);
  return out;
}

std::vector<float> halved_advantages(std::span<const float> scores, rl::Groups groups,
                                     std::span<const std::int64_t>) {
  std::vector<float> advantages = rl::grpo_advantages(scores, groups);
  for (float& advantage : advantages) advantage *= 0.5F;
  return advantages;
}

runtime::Status driver_main(runtime::Runtime& rt) {
  const std::vector<std::string>& arguments = rt.arguments();
  auto config = rl::Config::load({.overrides = {arguments.begin() + 1, arguments.end()}});
  if (!config.ok()) return config.status();
  rl::Trainer trainer(*config);
  double last = -1.0, clipped = -1.0, gradient = -1.0;
  trainer.on_step([&](const rl::StepRecord& record) {
    last = record.metrics.at("critic/score/mean");
    if (record.step != 1) return;
    clipped = record.metrics.at("actor/pg_clipfrac");
    gradient = record.metrics.at("actor/grad_norm");
  });
  runtime::Status status = trainer.fit(2);
  if (!status.ok()) return status;
  const auto saved = trainer.save_checkpoint();
  if (!saved.ok()) return saved.status();
  status = trainer.fit(2);
  const double first_time = last;
  if (status.ok()) status = trainer.load_checkpoint(*saved);
  if (status.ok() && trainer.steps_done() != 2)
    return runtime::internal_error("the checkpoint is of another step");
  if (status.ok()) status = trainer.fit(2);
  if (!status.ok()) return status;
  const double again = last;
  const std::int64_t compared = trainer.steps_done();
  while (trainer.steps_done() < trainer.total_steps()) {  // the rest one by one
    const auto metrics = trainer.step();
    if (!metrics.ok()) return metrics.status();
  }
  std::printf("steps %ld again %s clipped %.2f gradient %.9g\n", static_cast<long>(compared),
              again == first_time ? "equal" : "different", clipped, gradient);
  return {};
}

int main(int argc, char** argv) {
  runtime::Runtime rt(argc, argv);
  rl::register_training_actors(rt);
  rl::register_policy_loss("band", band_loss, {{"band_scale", 1.0}, {"band_width", 0.2}});
  rl::register_advantage_estimator("halved", halved_advantages);
  return rt.run(driver_main);
}
