/* The interface of a reward in a shared library: plain C, so that any compiler and language will
 * do. A library has the two functions below, with C linkage:
 *
 *   cc -shared -fPIC -o reward.so reward.c
 *   starling train ... reward.shared_library.path=reward.so
 *
 * It is loaded into its own processes (starling-reward-host), so that it may crash, hang or leak
 * without harm to the training.
 */
#ifndef STARLING_REWARD_LIBRARY_H
#define STARLING_REWARD_LIBRARY_H

#include <stddef.h>

/* 1: the four texts; a missing ground truth was an empty one. 2: has_ground_truth. Libraries that
 * were compiled for an earlier version go on working as they did. */
#define STARLING_REWARD_ABI 2

#ifdef __cplusplus
extern "C" {
#endif

/* One response. All texts are UTF-8, end with 0 and live as long as the call; none is NULL. */
struct starling_reward_sample {
  const char* data_source;
  const char* response;
  const char* ground_truth; /* a dictionary in the data is JSON here */
  const char* extra_info;   /* JSON, "{}" when there is none */
  int has_ground_truth;     /* 0: the row has no answer, and ground_truth is ""; else 1 */
};

/* Returns STARLING_REWARD_ABI: what the library was compiled for. */
int starling_reward_abi(void);

/* Writes the score and returns 0; or returns anything else after writing why, with a 0 at its end,
 * into `message`. One call at a time in a process. */
int starling_compute_score(const struct starling_reward_sample* sample, double* score,
                           char* message, size_t message_size);

#ifdef __cplusplus
}
#endif

#endif
