// What is asked of the rollout engine, and what it answers.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/status.h"

namespace rl {

/// How tokens are chosen. A value.
struct SamplingParams {
  float temperature = 1.0F;  // divides the logits; 0: greedy (the largest logit, the smaller id among equals), else at least 1e-4
  float top_p = 1.0F;        // the smallest set of likeliest tokens whose probability reaches it; (0, 1]
  std::int64_t top_k = 0;    // only the k likeliest; 0 (or negative, as verl writes it): all
  float min_p = 0.0F;        // only tokens at least this fraction as likely as the likeliest; 0: all
  float repetition_penalty = 1.0F;  // logits of tokens that the prompt or the completion holds are divided by it where positive, multiplied where negative; above 0
  std::int64_t max_new_tokens = 16;
  std::int64_t min_new_tokens = 0;      // until then no stop id is chosen
  std::uint64_t seed = 0;               // with the sample's index and the position it determines the draw: the batch does not matter
  std::vector<std::int32_t> stop_ids = {};  // besides the model's end-of-sequence ids
  bool ignore_eos = false;              // the model's end-of-sequence ids do not stop; stop_ids still do
  bool prompt_logprobs = false;         // also score the prompt

  /// kInvalidArgument: a value out of range, by name.
  runtime::Status validate() const;
};

/// One prompt.
struct Request {
  std::vector<std::int32_t> prompt_ids;  // not empty
  std::int64_t n = 1;                    // samples; they share the prompt's computation and memory
  SamplingParams sampling = {};
};

enum class FinishReason : std::uint8_t {
  kStop,     // a stop id, which is the last of `ids`
  kLength,   // max_new_tokens, or the end of the context
  kAborted,  // `ids` is what there was
  kError,    // see `status`
};

/// "stop", "length", "aborted", "error".
const char* to_string(FinishReason reason);

/// One sample of one request.
struct Completion {
  std::size_t request = 0;  // index into the requests
  std::int64_t sample = 0;  // below Request::n
  std::vector<std::int32_t> ids;
  /// Of `ids`: natural-log probabilities under softmax(logits / temperature) over the whole vocabulary (temperature 0 counts as 1),
  /// before top-k, top-p, min-p, the repetition penalty and min_new_tokens. It is what Transformer::token_logprobs gives at the same temperature, to the bit.
  std::vector<float> logprobs;
  std::vector<float> prompt_logprobs;  // of prompt_ids[1..], when asked for; temperature 1
  FinishReason finish_reason = FinishReason::kLength;
  runtime::Status status;  // ok unless finish_reason is kError: bad request, prompt too long, logits not finite
};

}  // namespace rl
