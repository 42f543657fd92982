// The placement layer: decides where actors and groups run; runtime obeys
// (runtime/control/scheduler.h).
#pragma once

#include "placement/group/strategy.h"               // which node each bundle of a group goes to
#include "placement/resource/label_selector.h"      // what is asked of a node's labels
#include "placement/resource/resources.h"           // exact amounts
#include "placement/resource/room.h"                // what is left, GPUs one by one
#include "placement/scheduler/cluster_scheduler.h"  // the cluster's account; what the head asks
