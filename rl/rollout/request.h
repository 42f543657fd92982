// Requests to the rollout engine, and their completions.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/core/status.h"

namespace rl {

/// Names a request that Engine::submit took. Never used twice by one engine.
using RequestId = std::size_t;

/// Added to the logit of one token.
struct LogitBias {
  std::int32_t id = 0;
  float bias = 0;
  bool operator==(const LogitBias&) const = default;
};

/// A token that could have come, and its natural-log probability.
struct TokenScore {
  std::int32_t id = 0;
  float logprob = 0;
  bool operator==(const TokenScore&) const = default;
};

/// Beam search as transformers does it: the `width` likeliest beginnings go on, and hypotheses that
/// ended are ranked by their log-probability / tokens^length_penalty. Nothing is sampled:
/// temperature, top-k, top-p and min-p do not apply; penalties, biases, bad words and
/// min_new_tokens act on the log-probabilities.
struct BeamSearchParams {
  enum class Stop : std::uint8_t {
    kHeuristic,  // when the best beam, at its length, can't beat the worst hypothesis
                 // (early_stopping=False)
    kFirst,      // as soon as there are `width` hypotheses (True)
    kNever,      // when no beam can win any more at any length ("never")
  };
  std::int64_t width = 0;       // 0: no beam search
  float length_penalty = 1.0F;  // above 0 favours long hypotheses, below 0 short ones
  Stop early_stopping = Stop::kHeuristic;
};

/// How tokens are chosen. A value. Of a token's logit, in this order: repetition_penalty, presence
/// and frequency penalties, logit_bias, what is forbidden (bad_words, stop ids before
/// min_new_tokens), temperature, top_k, top_p, min_p. Size: a field a setting of a request.
struct SamplingParams {
  float temperature = 1.0F;  // divides the logits; 0: greedy (the largest logit, the smaller id
                             // among equals), else at least 1e-4
  float top_p = 1.0F;  // the smallest set of likeliest tokens whose probability reaches it; (0, 1]
  std::int64_t top_k = 0;  // only the k likeliest; 0 (or negative, as verl writes it): all
  float first_temperature =
      0.0F;  // above 0: the completion's first token is sampled at this temperature instead; its
             // log-probability stays that at `temperature`; arXiv:2410.21236
  std::int64_t first_top_k = 0;  // and from this many likeliest where top_k says all
  float min_p = 0.0F;  // only tokens at least this fraction as likely as the likeliest; 0: all
  float repetition_penalty =
      1.0F;  // logits of tokens that the prompt or the completion holds are divided by it where
             // positive, multiplied where negative; above 0
  float presence_penalty = 0.0F;   // taken off the logits of tokens that the completion holds
  float frequency_penalty = 0.0F;  // the same, once for every time that it holds them
  std::vector<LogitBias> logit_bias = {};
  std::int64_t max_new_tokens = 16;
  std::int64_t min_new_tokens = 0;  // until then no stop id is chosen, and no stop string counts
  std::uint64_t seed = 0;  // with the sample's index and the position it determines the draw: the
                           // batch does not matter
  std::vector<std::int32_t> stop_ids = {};  // besides the model's end-of-sequence ids
  std::vector<std::string> stop_strings =
      {};  // in the completion's text, wherever tokens begin; needs EngineOptions::tokenizer
  bool keep_stop_string =
      false;                // Completion::text ends with the stop string rather than before it
  bool ignore_eos = false;  // the model's end-of-sequence ids do not stop; stop_ids still do
  std::vector<std::vector<std::int32_t>> bad_words =
      {};  // token sequences that must not come about: the last id of each is forbidden behind the
           // others
  bool prompt_logprobs = false;  // also score the prompt
  std::int64_t prompt_top_logprobs =
      0;  // number of likeliest tokens at each place of the prompt; at most 128
  std::int64_t top_logprobs =
      0;  // number of likeliest tokens at each place of the completion; at most 128
  bool processed_logprobs =
      false;          // also the log-probs of sampling, behind penalties, biases, top-k and all
  bool text = false;  // fill Completion::text and NewToken::text; needs EngineOptions::tokenizer
  bool skip_special_tokens = true;  // in the text
  BeamSearchParams beam = {};

  /// kInvalidArgument: a value out of range, by name.
  runtime::Status validate() const;
};

/// Tokens in a row that were chosen with the same weights.
struct VersionRun {
  std::uint64_t version = 0;
  std::int64_t tokens = 0;
  auto fields() { return std::tie(version, tokens); }
  bool operator==(const VersionRun&) const = default;
};

/// A sample as far as it was generated. It is what is known of an aborted Completion, to go on
/// behind it in another engine, or with other weights.
struct PartialSample {
  std::vector<std::int32_t> ids;
  std::vector<float> logprobs;              // of each
  std::vector<VersionRun> weight_versions;  // of `ids`, in their order
  bool finished = false;                    // nothing is to be generated any more
  bool stopped = false;  // it finished by a stop token, rather than for its length
  auto fields() { return std::tie(ids, logprobs, weight_versions, finished, stopped); }
  bool operator==(const PartialSample&) const = default;
};

/// One prompt.
struct Request {
  std::vector<std::int32_t> prompt_ids;  // not empty
  std::int64_t n = 1;                    // samples; they share the prompt's computation and memory
  std::int64_t best_of =
      0;  // above n: samples generated; the n of the highest mean log-prob are returned, best first
  std::int64_t priority = 0;          // SchedulingPolicy::kPriority: larger first
  std::int64_t predicted_tokens = 0;  // SchedulingPolicy::kLongestFirst: how long the completion
                                      // will likely be; 0: max_new_tokens
  SamplingParams sampling = {};
  /// For each of the n samples what there is of it; or empty. What follows is sampled as if all of
  /// it were one request: the draw of a token goes by its place. Not with beam search, best_of,
  /// stop strings, text, top log-probabilities, processed ones or those of the prompt.
  std::vector<PartialSample> partial = {};
};

enum class FinishReason : std::uint8_t {
  kStop,     // a stop id, which is the last of `ids`, or a stop string
  kLength,   // max_new_tokens, or the end of the context
  kAborted,  // `ids` is what there was
  kError,    // see `status`
};

/// "stop", "length", "aborted", "error".
const char* to_string(FinishReason reason);

/// One sample of one request.
struct Completion {
  RequestId request = 0;    // of submit(); of generate(): index into its requests
  std::int64_t sample = 0;  // which sample (below n or best_of), or which hypothesis (0: the best)
  std::vector<std::int32_t> ids;
  /// Of `ids`: natural-log probabilities under softmax(logits / temperature) over the whole
  /// vocabulary. Temperature 0 and beam search count as temperature 1. The probabilities are those
  /// before penalties, biases, top-k, top-p, min-p and what is forbidden. They are what
  /// Transformer::token_logprobs gives at the same temperature, to the bit.
  std::vector<float> logprobs;
  std::vector<float> processed_logprobs;  // of `ids`, under what was sampled from; temperature 0:
                                          // penalties, biases and bans at temperature 1
  std::vector<std::vector<TokenScore>> top_logprobs;  // likeliest first, as `logprobs`
  std::vector<std::vector<TokenScore>>
      top_processed_logprobs;  // likeliest first, as `processed_logprobs`; may be shorter: what
                               // can't be sampled is not there
  std::vector<float> prompt_logprobs;  // of prompt_ids[1..], when asked for; temperature 1
  std::vector<std::vector<TokenScore>> prompt_top_logprobs;  // at the places of prompt_ids[1..]
  std::string text;                         // of `ids`, without what a stop string cut off
  std::string stop_string;                  // the one that ended it
  float beam_score = 0;                     // beam search: what hypotheses are ranked by
  std::vector<VersionRun> weight_versions;  // of `ids`, in their order
  std::int64_t length_max = 0;  // what the sequence might have reached: what angles that depend on
                                // a length (dynamic, longrope) went by
  std::int64_t cached_prompt_tokens =
      0;  // of the prompt, read from the prefix cache rather than computed
  FinishReason finish_reason = FinishReason::kLength;
  runtime::Status
      status;  // ok unless finish_reason is kError: bad request, prompt too long, logits not finite

  /// The weights with which ids[i] was chosen.
  std::uint64_t weight_version(std::size_t i) const;
};

}  // namespace rl
