// The kernels as one include. All of them are fp32 on raw pointers, without torch, and
// batch-invariant:
//
//   Every output element is computed by one thread, in an order of operations that depends only on
//   the element's own inputs: never on how many rows come together, on the number of threads, on
//   tiles, or on the page size of a cache. A reduction along k uses 16 partial sums (lane l takes k
//   = l, l + 16, ...) with fused multiply-adds, folded 16 -> 8 -> 4 -> 2 -> 1 at the end. The
//   AVX-512, AVX2 and portable versions follow the same order, so that they, too, give the same
//   bits.
//
// This is what makes a rollout's log-probs equal the trainer's: both call these functions.
#pragma once

#include "rl/kernel/attention.h"
#include "rl/kernel/elementwise.h"
#include "rl/kernel/int8.h"
#include "rl/kernel/isa.h"
#include "rl/kernel/linear.h"
#include "rl/kernel/norm.h"
#include "rl/kernel/product.h"
#include "rl/kernel/rope.h"
#include "rl/kernel/softmax.h"
#include "rl/kernel/thread_pool.h"
