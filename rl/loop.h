// What a training loop of your own needs besides rl/rl.h, as one include: groups of workers and
// what they exchange (examples/ppo.cpp).
#pragma once

#include "rl/actor/actors.h"
#include "rl/actor/worker_group.h"
#include "rl/batch/worker_lists.h"
#include "rl/data/sampler.h"
#include "rl/feed/prompt_feed.h"
#include "rl/optim/learner.h"
#include "rl/rl.h"
#include "rl/worker/toy_model.h"
