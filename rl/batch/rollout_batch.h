// The data that policy, reward and reference workers exchange: prompts and their samples. Values
// without torch. They travel as objects between actors; the controller holds references to them,
// never the bytes.
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

/// Rows of different lengths, stored one after another.
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

  /// Whether offsets start at 0, never fall, and end at the number of values. Check it before
  /// calling row() on a value from another process.
  bool consistent() const;

  auto fields() { return std::tie(values, offsets); }
  bool operator==(const Ragged&) const = default;
};

/// One worker's share of a step's prompts.
struct PromptBatch {
  Ragged<std::int32_t> ids;
  // Seeds of each prompt's samples: the same on whichever worker generates them.
  std::vector<std::uint64_t> seeds;
  // [prompts]: JSON, what a multi-turn conversation needs to know of its row (see
  // conversation_context()); or empty.
  std::vector<std::string> contexts = {};

  auto fields() { return std::tie(ids, seeds, contexts); }
  bool operator==(const PromptBatch&) const = default;
};

/// Samples in prompt order, `n` of each prompt next to each other.
struct RolloutBatch {
  Ragged<std::int32_t> prompts;
  std::vector<std::int32_t> prompt_of;  // [samples]: row in `prompts`
  Ragged<std::int32_t> responses;       // [samples]; never empty rows
  std::vector<float> logprobs;  // of the learned tokens of the responses, under the policy and
                                // temperature that generated them
  // [samples]: 1 if a stop token ended the response, 0 if the length limit did.
  std::vector<std::uint8_t> stopped;
  // [samples]: Completion::length_max, so that all workers use the same rotary angles; or empty.
  std::vector<std::int64_t> lengths_max = {};
  /// For responses.values: 1 if the policy generated the token, 0 if a tool or a user wrote it
  /// (verl's response_mask). Empty: the policy generated all of them. Tokens with a 0 are read and
  /// never learned: per-token numbers (log-probabilities, values, advantages) exist for learned
  /// tokens only, and are stored one after another.
  std::vector<std::uint8_t> response_mask = {};
  std::vector<std::int64_t> turns = {};  // [samples]: messages of the conversation as verl counts
                                         // them, the prompt's as one; or empty
  std::vector<std::string> notes = {};   // [samples]: JSON, what a scorer gets about the sample in
                                         // extra_info (turns, rewards of tools); or empty

  std::int64_t samples() const { return responses.rows(); }

  /// Learned tokens of the response; and of all responses before it, which is the index of its
  /// first per-token number.
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

/// How to score the samples of one prompt.
struct RewardTask {
  std::string data_source;
  std::string ground_truth;
  std::string where;            // the row, for messages
  std::string extra_info = {};  // JSON, or empty
  std::string prompt = {};      // JSON, see ScoreRequest; empty unless a reward model asks for it
  // NamedTeacher::rows of the teacher that scores its samples; empty unless there are several.
  std::string teacher = {};
  bool has_ground_truth = true;       // the row has that column, whose text may be empty
  bool ground_truth_is_json = false;  // as DataRow has it

  auto fields() {
    return std::tie(data_source, ground_truth, where, extra_info, prompt, teacher, has_ground_truth,
                    ground_truth_is_json);
  }
  bool operator==(const RewardTask&) const = default;
};

/// One sample as text, for people.
struct SampleText {
  std::string prompt;
  std::string response;
  std::string ground_truth;
  double score = 0.0;
  std::vector<std::string> tokens = {};  // the text that each token adds to the response;
                                         // special tokens add nothing
  std::vector<float> logprobs = {};      // of each token; 0 if it is not learned
  std::vector<std::uint8_t> mask = {};   // of each token: RolloutBatch::response_mask, or empty
  bool ground_truth_is_json = false;     // as DataRow has it

  auto fields() {
    return std::tie(prompt, response, ground_truth, score, tokens, logprobs, mask,
                    ground_truth_is_json);
  }
  bool operator==(const SampleText&) const = default;
};

/// The summary of a RolloutBatch for the controller: scalars per sample.
struct RolloutSummary {
  std::vector<std::int64_t> prompt_tokens;    // [samples]
  std::vector<std::int64_t> response_tokens;  // [samples]; all that follow the prompt
  std::vector<std::int64_t> learned_tokens;   // [samples]; the learned ones of these
  std::vector<std::uint8_t> stopped;          // [samples]
  double seconds = 0.0;                       // of generation, on the worker
  // Outcomes of tool calls during generation, to be summed over workers.
  std::map<std::string, double> metrics = {};
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
std::vector<std::vector<std::int64_t>> tokens_by_sample(std::span<const RolloutSummary> summaries);

/// `kept` followed by the samples of `prompts`, which are rows of fresh.prompts. kInvalidArgument:
/// an inconsistent batch, a row that does not exist.
runtime::Result<RolloutBatch> append_prompts(const RolloutBatch& kept, const RolloutBatch& fresh,
                                             std::span<const std::int64_t> prompts);

/// The samples of the prompts at `places` (row `place.row` of batches[place.worker]), in that
/// order: for workers that did not generate them. kInvalidArgument: an inconsistent batch, a place
/// that does not exist.
runtime::Result<RolloutBatch> collect_prompts(std::span<const RolloutBatch> batches,
                                              std::span<const PromptPlace> places);

/// The batch without the samples that have a 1 in `left_out`; all prompts stay. kInvalidArgument:
/// `left_out` has another size than there are samples.
runtime::Result<RolloutBatch> without_samples(const RolloutBatch& batch,
                                              const std::vector<std::uint8_t>& left_out);

/// Of `values`, one per learned token of `batch`, those of the samples that without_samples()
/// keeps. kInvalidArgument: another size than there are samples or tokens.
runtime::Result<std::vector<float>> token_values_without(const RolloutBatch& batch,
                                                         std::span<const float> values,
                                                         const std::vector<std::uint8_t>& left_out);

/// The reverse of token_values_without(): copies `of_kept`, the numbers of samples with a 0 in
/// `left_out`, into `values`, which has the numbers of all samples. Errors likewise.
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
