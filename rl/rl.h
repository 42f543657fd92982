// Starling's reinforcement learning, as one include; rl/loop.h has what custom loops need
// besides. What neither lists is private to the layer.
//
//   int driver_main(runtime::Runtime& runtime) {
//     auto config = rl::Config::load({.file = "grpo.yaml"});
//     auto trainer = rl::Trainer::create(runtime, *config);
//     return (*trainer)->fit().ok() ? 0 : 1;
//   }
//
//   int main(int argc, char** argv) {
//     runtime::Runtime runtime(argc, argv);
//     rl::register_training_actors(runtime);
//     return runtime.run(driver_main);
//   }
#pragma once

#include "rl/actor/training_actors.h"
#include "rl/algo/advantage_estimator.h"
#include "rl/algo/aggregate.h"
#include "rl/algo/custom_advantage.h"
#include "rl/algo/custom_policy_loss.h"
#include "rl/algo/group_advantage.h"
#include "rl/algo/kl.h"
#include "rl/algo/masked.h"
#include "rl/algo/policy_loss.h"
#include "rl/algo/preference.h"
#include "rl/algo/token_advantage.h"
#include "rl/checkpoint/checkpoint.h"
#include "rl/config/config.h"
#include "rl/data/dataset.h"
#include "rl/data/prompt_builder.h"
#include "rl/metrics/metrics.h"
#include "rl/model/parameters.h"
#include "rl/model/save.h"
#include "rl/model/transformer.h"
#include "rl/reward/reward_function.h"
#include "rl/reward/rule.h"
#include "rl/rollout/engine.h"
#include "rl/template/template.h"
#include "rl/tokenizer/tokenizer.h"
#include "rl/trainer.h"
