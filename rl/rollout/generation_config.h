// generation_config.json: how a model wants its text to be generated, as its makers published it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "rl/rollout/request.h"
#include "runtime/core/result.h"

namespace rl {

/// A member that says how many responses a prompt gets, which is the caller's to say here.
inline constexpr const char* kNumReturnSequences = "num_return_sequences";

/// A value. What the file leaves out is what transformers takes for it: greedy unless do_sample is
/// true, and then the 50 likeliest tokens.
struct GenerationConfig {
  std::optional<bool> do_sample;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<std::int64_t> top_k;
  std::optional<float> repetition_penalty;
  std::optional<std::int64_t> max_new_tokens;
  std::optional<std::int64_t> min_new_tokens;
  std::optional<std::int64_t> num_beams;  // above 1: beam search, where nothing is sampled
  std::optional<float> length_penalty;
  std::optional<BeamSearchParams::Stop> early_stopping;
  std::vector<std::vector<std::int32_t>>
      bad_words;  // bad_words_ids, and suppress_tokens as words of one
  std::vector<std::string> stop_strings;
  std::vector<std::string> unsupported;  // "no_repeat_ngram_size is 3": options that would change
                                         // what is generated and that this engine does not have
  std::vector<std::string> unknown;      // keys that mean nothing here, among them
                                         // kNumReturnSequences where it is not 1

  /// Of the folder of a model, or next to a model's file; everything unset when there is no such
  /// file. (End-of-sequence ids are the ModelConfig's.) Errors name the file and the key:
  /// kInvalidArgument (damaged, of the wrong type).
  static runtime::Result<GenerationConfig> load(const std::filesystem::path& model);

  /// As load, of the object itself; `name` is for messages.
  static runtime::Result<GenerationConfig> from_json(const nlohmann::json& object,
                                                     const std::string& name);

  /// `otherwise` with what the file says.
  SamplingParams apply(SamplingParams otherwise) const;
};

}  // namespace rl
