// The forward step of generation: tokens in, logits out, keys and values into the cache.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rl/kernel/thread_pool.h"
#include "rl/rollout/decoder_weights.h"
#include "rl/rollout/kv_cache.h"

namespace rl {

class Rope;

/// Tokens of one sequence in a step: one when decoding, several when a prompt is read.
struct StepSequence {
  std::span<const std::int32_t> tokens;
  std::span<const std::int32_t> blocks;  // covers first_position + tokens.size() positions
  std::int64_t first_position = 0;       // positions before it are in the cache
};

/// Runs the kernels of rl/kernel in the order of Transformer's forward pass, so that a token's logits have the same bits whether its
/// sequence comes token by token, in pieces or whole, alone or with others, here or there.
/// One thread at a time; borrows the cache, the rope and the pool.
class Decoder {
 public:
  Decoder(const Rope& rope, KvCache& cache, kernel::ThreadPool& pool) : rope_(rope), cache_(cache), pool_(pool) {}

  /// Runs all tokens of the step, in one batch of as many rows. Token ids must be inside the vocabulary.
  void forward(const DecoderWeights& weights, std::span<const StepSequence> sequences);

  /// Logits [rows.size(), vocab] of rows of the last forward(), counted through its sequences. Valid until the next call.
  std::span<const float> logits(const DecoderWeights& weights, std::span<const std::int64_t> rows);

 private:
  void attend(const DecoderWeights& weights, std::int64_t layer, std::span<const StepSequence> sequences);
  void store_keys_and_values(std::int64_t layer, std::span<const StepSequence> sequences);

  const Rope& rope_;
  KvCache& cache_;
  kernel::ThreadPool& pool_;

  std::int64_t rows_ = 0;
  std::vector<std::int32_t> ids_;
  std::vector<std::int32_t> positions_;
  // Activations; rows of the step each, kept between steps.
  std::vector<float> hidden_;
  std::vector<float> normed_;
  std::vector<float> q_;
  std::vector<float> k_;
  std::vector<float> v_;
  std::vector<float> attended_;
  std::vector<float> gate_;
  std::vector<float> up_;
  std::vector<float> delta_;
  std::vector<float> logits_;
};

}  // namespace rl
