/* The interface of a reward in a shared library: plain C, so that any compiler and language will
 * do. A library has the two functions below, with C linkage:
 *
 *   cc -shared -fPIC -o reward.so reward.c
 *   starling train ... reward.shared_library.path=reward.so
 *
 * It is loaded into processes of its own (starling-reward-host), so that it may crash, hang or leak
 * without harm to the training.
 */
#ifndef STARLING_REWARD_LIBRARY_H
#define STARLING_REWARD_LIBRARY_H

#include <stddef.h>

#define STARLING_REWARD_ABI 1

#ifdef __cplusplus
extern "C" {
#endif

/* One response. All texts are UTF-8, end with 0 and live as long as the call; none is NULL. */
struct starling_reward_sample {
  const char* data_source;
  const char* response;
  const char* ground_truth; /* a dictionary in the data is JSON here */
  const char* extra_info;   /* JSON, "{}" when there is none */
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
