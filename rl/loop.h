// Umbrella header for a custom training loop, included besides rl/rl.h: groups of workers and the
// values that they exchange (examples/ppo.cpp).
#pragma once

#include "rl/actor/actors.h"
#include "rl/actor/worker_group.h"
#include "rl/batch/worker_lists.h"
#include "rl/data/sampler.h"
#include "rl/feed/prompt_feed.h"
#include "rl/optim/learner.h"
#include "rl/rl.h"
#include "rl/worker/toy_model.h"
