// Options of a rollout engine: its memory, its batch, its scheduling.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rl/rollout/kv_cache.h"
#include "rl/tokenizer/tokenizer.h"

namespace rl {

/// Which requests come first: into the batch, and where cache blocks run out.
enum class SchedulingPolicy : std::uint8_t {
  kFirstCome,
  kLongestFirst,  // by Request::predicted_tokens: long ones started last would run alone at the end
  kPriority,      // by Request::priority; one that is higher takes the place of one that runs
};

/// What happens to a sequence whose blocks are wanted by one that comes before it.
enum class Preemption : std::uint8_t {
  kRecompute,  // what was computed is dropped, and computed again when there is room
  kSwap,       // it is copied to other memory, and back; beyond EngineOptions::swap_bytes_max as
               // kRecompute
};

/// How long keys and values of finished requests stay for prompts that begin alike.
enum class PrefixCaching : std::uint8_t {
  kOff,        // samples of one request share its prompt all the same
  kWhileBusy,  // until the engine has no request left: weights may then change without a word
  kKeep,       // until weights_changed(), which must be called whenever they change
};

/// What becomes of requests that have begun when the weights change.
enum class OnNewWeights : std::uint8_t {
  kContinue,   // they go on with the keys and values of the old weights
  kRecompute,  // their tokens stay, but are read again by the new weights before the next is chosen
  kRestart,    // they begin again with the prompt
};

/// What the engine multiplies with.
enum class EngineWeights : std::uint8_t {
  kFp32,  // the model's own
  kInt8,  // a copy of its linear layers in 8 bits, a quarter of their size: faster where reading
          // weights takes the time
};

struct EngineOptions {
  KvCacheOptions cache = {};
  std::int64_t sequences_max = 64;     // decoded together
  std::int64_t step_tokens_max = 512;  // rows of one forward step: decoding sequences first,
                                       // prompts in pieces with what is left
  EngineWeights weights = EngineWeights::kFp32;
  std::string device = {};  // "cpu", "cuda" or "cuda:1", and then the model's weights must be
                            // there; empty: wherever they are
  bool deterministic =
      true;  // on a CPU: the trainer's own kernels, and bits that depend on the request alone.
             // False: ATen, near those numbers. Other devices always compute by ATen
  std::int64_t context_max =
      0;  // tokens of prompt and completion together; 0: the model's max_position_embeddings
  SchedulingPolicy policy = SchedulingPolicy::kFirstCome;
  Preemption preemption = Preemption::kRecompute;
  std::int64_t swap_bytes_max = std::int64_t{1} << 30;  // of Preemption::kSwap
  PrefixCaching prefix_caching = PrefixCaching::kWhileBusy;
  std::int64_t prefix_bytes_max = std::int64_t{256}
                                  << 20;    // of the cache, in blocks that are not in use
  std::int64_t requests_max = 1 << 20;      // taken and not finished
  std::optional<Tokenizer> tokenizer = {};  // for text, stop strings and its end of sequence
  std::vector<std::int32_t> end_ids = {};   // ids that end a sequence besides the model's own
};

}  // namespace rl
