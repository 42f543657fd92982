// What policy, reward and reference workers pass to each other: prompts and the samples drawn for
// them. Values without torch. They travel as objects between actors; the controller holds
// references to them, never the bytes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "rl/batch/balance.h"
#include "runtime/core/result.h"
#include "runtime/core/status.h"

namespace rl {

/// Rows of different lengths, end to end.
template <class T>
struct Ragged {
  std::vector<T> values;
  std::vector<std::int64_t> offsets{0};  // [rows + 1]

  std::int64_t rows() const { return static_cast<std::int64_t>(offsets.size()) - 1; }

  std::int64_t row_size(std::int64_t index) const {
    return offsets[static_cast<std::size_t>(index) + 1] - offsets[static_cast<std::size_t>(index)];
  }

  std::span<const T> row(std::int64_t index) const {
    return std::span<const T>(values).subspan(
        static_cast<std::size_t>(offsets[static_cast<std::size_t>(index)]),
        static_cast<std::size_t>(row_size(index)));
  }

  void append(std::span<const T> row) {
    values.insert(values.end(), row.begin(), row.end());
    offsets.push_back(static_cast<std::int64_t>(values.size()));
  }

  /// Whether offsets start at 0, never fall, and end at the number of values: what must hold before
  /// row() is called on a value that came from elsewhere.
  bool consistent() const;

  auto fields() { return std::tie(values, offsets); }
  bool operator==(const Ragged&) const = default;
};

/// One worker's share of a step's prompts.
struct PromptBatch {
  Ragged<std::int32_t> ids;
  std::vector<std::uint64_t>
      seeds;  // of each prompt's samples: the same whichever worker draws them
  std::vector<std::string> contexts =
      {};  // [prompts]: JSON, what a conversation of several turns needs to know of its row (see
           // conversation_context()); or empty

  auto fields() { return std::tie(ids, seeds, contexts); }
  bool operator==(const PromptBatch&) const = default;
};

/// Samples in prompt order, `n` of each prompt next to each other.
struct RolloutBatch {
  Ragged<std::int32_t> prompts;
  std::vector<std::int32_t> prompt_of;  // [samples]: row in `prompts`
  Ragged<std::int32_t> responses;       // [samples]; never empty rows
  std::vector<float> logprobs;  // of the learned tokens of the responses, under the policy and
                                // temperature that drew them
  std::vector<std::uint8_t>
      stopped;  // [samples]: 1 when a stop token ended the response, 0 when the length limit did
  std::vector<std::int64_t> lengths_max = {};  // [samples]: Completion::length_max, so that
                                               // everybody computes with the same angles; or empty
  /// Of responses.values: 1 where the policy chose the token, 0 where a tool or a user wrote it in
  /// between (verl's response_mask). Empty: the policy chose all of them. Tokens with a 0 are read
  /// and never learned: numbers per token (log-probabilities, values, advantages) are of the
  /// learned ones alone, end to end.
  std::vector<std::uint8_t> response_mask = {};
  std::vector<std::int64_t> turns = {};  // [samples]: messages of the conversation as verl counts
                                         // them, the prompt's as one; or empty
  std::vector<std::string> notes = {};   // [samples]: JSON, what a scorer is told of the sample in
                                         // extra_info (turns, rewards of tools); or empty

  std::int64_t samples() const { return responses.rows(); }

  /// Tokens of the response that are learned; and of all responses before it, which is where its
  /// numbers per token begin.
  std::int64_t learned_tokens(std::int64_t sample) const;
  std::int64_t learned_before(std::int64_t sample) const;

  /// The response's part of response_mask; empty where all of it is learned.
  std::span<const std::uint8_t> mask_of(std::int64_t sample) const;

  /// kInvalidArgument: sizes that do not fit together, an index out of range.
  runtime::Status validate() const;

  auto fields() {
    return std::tie(prompts, prompt_of, responses, logprobs, stopped, lengths_max, response_mask,
                    turns, notes);
  }
  bool operator==(const RolloutBatch&) const = default;
};

/// How the samples of one prompt are judged.
struct RewardTask {
  std::string data_source;
  std::string ground_truth;
  std::string where;        // the row, for messages
  std::string extra_info;   // JSON, or empty
  std::string prompt = {};  // JSON, see ScoreRequest; empty unless a reward model asks for it
  std::string teacher =
      {};  // NamedTeacher::rows of the one that scores its samples; empty unless there are several
  bool has_ground_truth = true;       // the row has a column of it, which may be an empty text
  bool ground_truth_is_json = false;  // as DataRow has it

  auto fields() {
    return std::tie(data_source, ground_truth, where, extra_info, prompt, teacher, has_ground_truth,
                    ground_truth_is_json);
  }
  bool operator==(const RewardTask&) const = default;
};

/// One sample as people read it.
struct SampleText {
  std::string prompt;
  std::string response;
  std::string ground_truth;
  double score = 0.0;
  std::vector<std::string> tokens = {};  // texts that make up the response: what each of its tokens
                                         // added; special ones add nothing
  std::vector<float> logprobs = {};      // of each; 0 of one that is not learned
  std::vector<std::uint8_t> mask = {};   // of each: RolloutBatch::response_mask, or empty
  bool ground_truth_is_json = false;     // as DataRow has it

  auto fields() {
    return std::tie(prompt, response, ground_truth, score, tokens, logprobs, mask,
                    ground_truth_is_json);
  }
  bool operator==(const SampleText&) const = default;
};

/// What the controller learns about a RolloutBatch: scalars per sample.
struct RolloutSummary {
  std::vector<std::int64_t> prompt_tokens;    // [samples]
  std::vector<std::int64_t> response_tokens;  // [samples]; all that follow the prompt
  std::vector<std::int64_t> learned_tokens;   // [samples]; those of them that are learned
  std::vector<std::uint8_t> stopped;          // [samples]
  double seconds = 0.0;                       // of generation, on the worker
  std::map<std::string, double> metrics =
      {};  // of generation, to be summed over workers: what became of calls of tools
  std::vector<std::int64_t> turns = {};   // [samples]: RolloutBatch::turns
  std::vector<float> mean_logprobs = {};  // [samples]: of the learned tokens

  auto fields() {
    return std::tie(prompt_tokens, response_tokens, learned_tokens, stopped, seconds, metrics,
                    turns, mean_logprobs);
  }
  bool operator==(const RolloutSummary&) const = default;
};

RolloutSummary summarize(const RolloutBatch& batch);

/// Prompt and response tokens of each sample, by worker.
std::vector<std::vector<std::int64_t>> sample_tokens(std::span<const RolloutSummary> summaries);

/// `kept` with the samples of `prompts`, rows of fresh.prompts, behind its own. kInvalidArgument:
/// an inconsistent batch, a row that is not there.
runtime::Result<RolloutBatch> append_prompts(const RolloutBatch& kept, const RolloutBatch& fresh,
                                             std::span<const std::int64_t> prompts);

/// The samples of those prompts, row `place.row` of batches[place.worker], in their order: how
/// samples come to who did not draw them. kInvalidArgument: an inconsistent batch, a place that is
/// not there.
runtime::Result<RolloutBatch> collect_prompts(std::span<const RolloutBatch> batches,
                                              std::span<const PromptPlace> places);

/// The samples with a 0 in `left_out`, in their order; all prompts stay. kInvalidArgument: another
/// size than there are samples.
runtime::Result<RolloutBatch> without_samples(const RolloutBatch& batch,
                                              const std::vector<std::uint8_t>& left_out);

/// Of numbers per learned token of `batch` those of the samples that without_samples() keeps.
/// kInvalidArgument: another size than there are samples or tokens.
runtime::Result<std::vector<float>> token_values_without(const RolloutBatch& batch,
                                                         std::span<const float> values,
                                                         const std::vector<std::uint8_t>& left_out);

/// The reverse of token_values_without(): puts the numbers of samples with a 0 in `left_out` into
/// `values`, which has those of all. Errors likewise.
runtime::Status put_token_values(const RolloutBatch& batch, std::span<const float> of_kept,
                                 const std::vector<std::uint8_t>& left_out,
                                 std::span<float> values);

/// Prompts with the responses to learn, for supervised steps.
struct DemonstrationBatch {
  Ragged<std::int32_t> prompts;
  Ragged<std::int32_t> responses;  // as many rows

  auto fields() { return std::tie(prompts, responses); }
  bool operator==(const DemonstrationBatch&) const = default;
};

/// Prompt and response tokens of each row.
std::vector<std::int64_t> row_lengths(const DemonstrationBatch& batch);

}  // namespace rl
