// A driver built against the installed package: some steps of GRPO with a call-back, a checkpoint, and the same numbers again from it. The loss of one's own
// at the end shows that ATen's headers are there.
#include <ATen/TensorOperators.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tensor.h>

#include <cstdio>
#include <string>
#include <vector>

#include "rl/rl.h"
#include "runtime/runtime.h"

// A pure function of a user's own: what is too far from 1 costs.
at::Tensor band_loss(const at::Tensor& ratio, double width) { return at::relu((ratio - 1).abs() - width); }

runtime::Status driver_main(runtime::Runtime& rt) {
  const std::vector<std::string>& arguments = rt.arguments();
  auto config = rl::Config::load({.overrides = {arguments.begin() + 1, arguments.end()}});
  if (!config.ok()) return config.status();
  rl::Trainer trainer(*config);
  double last = -1.0;
  trainer.on_step([&](const rl::StepRecord& record) { last = record.metrics.at("critic/score/mean"); });
  runtime::Status status = trainer.fit(2);
  if (!status.ok()) return status;
  const auto saved = trainer.save_checkpoint();
  if (!saved.ok()) return saved.status();
  status = trainer.fit(2);
  const double first_time = last;
  if (status.ok()) status = trainer.load_checkpoint(*saved);
  if (status.ok() && trainer.steps_done() != 2) return runtime::internal_error("the checkpoint is of another step");
  if (status.ok()) status = trainer.fit(2);
  if (!status.ok()) return status;
  const double loss = band_loss(at::tensor({1.5F, 0.9F}), 0.25).sum().item<float>();
  std::printf("steps %ld again %s loss %.2f\n", static_cast<long>(trainer.steps_done()), last == first_time ? "equal" : "different", loss);
  return {};
}

int main(int argc, char** argv) {
  runtime::Runtime rt(argc, argv);
  rl::register_training_actors(rt);
  return rt.run(driver_main);
}
