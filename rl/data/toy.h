// The built-in toy tasks: text small enough that a model made on the spot learns them within a
// minute. Everything is a function of the options: no file, no clock, the same rows on every
// platform.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rl/data/dataset.h"
#include "runtime/core/result.h"

namespace rl {

/// What the model has to write after the letters of the prompt ("sort dbca").
enum class ToyTask {
  kCount,    // the letters that follow in the (cyclic) alphabet: "c" -> "defg". Needs the previous
             // letter only: the easiest
  kCopy,     // the same letters
  kReverse,  // the letters backwards
  kSort,     // the letters in order
};

struct ToyOptions {
  ToyTask task = ToyTask::kSort;
  std::int64_t rows = 1024;
  std::int64_t letters = 8;  // alphabet size, 2..26
  std::int64_t length = 4;   // letters in a prompt, and in its answer
  std::uint64_t seed = 1;

  /// From the `data.toy` section: task, rows, letters, length. kInvalidArgument: out of range,
  /// unknown task.
  static runtime::Result<ToyOptions> from_json(const nlohmann::ordered_json& section,
                                               std::uint64_t seed);
  bool operator==(const ToyOptions&) const = default;
};

/// Rows with a chat prompt of one user message, the answer as ground truth, and the same answer as
/// demonstration (`response`). `data_source` is "toy", which implies the smooth rule `letters`.
Dataset make_toy_dataset(const ToyOptions& options);

/// What a toy tokenizer needs: every character that prompts and answers use, in a fixed order.
std::string toy_characters();

/// A complete tokenizer.json for the toy tasks: byte-level BPE without merges, one id per
/// character. Ids from 0 are the special tokens "<|pad|>", "<|end|>", "<|user|>", "<|assistant|>",
/// then toy_characters().
std::string toy_tokenizer_json();
/// The tokenizer_config.json next to it: special tokens and the chat template below.
std::string toy_tokenizer_config_json();
/// "<|user|>sort dbca<|end|><|assistant|>" + answer + "<|end|>".
std::string toy_chat_template();
/// How many ids that tokenizer has, and the two that a model's config.json names.
std::int64_t toy_vocab_size();
inline constexpr std::int32_t kToyPadId = 0;
inline constexpr std::int32_t kToyEndId = 1;

}  // namespace rl
