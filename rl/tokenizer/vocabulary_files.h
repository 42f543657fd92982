// Files next to a vocabulary in Hugging Face's older layouts (vocab.json and merges.txt, or a
// SentencePiece model). They name the class that reads it and its added and special tokens, and say
// whether begin and end tokens are added. transformers converts such a folder when it loads it.
// Here the same comes out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "rl/tokenizer/added_tokens.h"
#include "rl/tokenizer/pipeline.h"
#include "runtime/core/result.h"
#include "runtime/core/status.h"

namespace rl {

/// The names under which special tokens go, in the order in which transformers adds those that a
/// vocabulary lacks.
inline constexpr const char* kSpecialTokenNames[] = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

struct SlowTokenizerFiles {
  nlohmann::json config;  // tokenizer_config.json; the others likewise null when missing
  nlohmann::json map;     // special_tokens_map.json
  nlohmann::json added;   // added_tokens.json
  nlohmann::ordered_json ordered_config;  // the first two again, with their keys in order: tokens
  nlohmann::ordered_json ordered_map;     // get their ids in it
  std::string class_name;  // "GPT2Tokenizer", without "Fast"; empty when the folder does not say
  std::string model_type;  // of config.json; empty when missing
};

/// Errors name the file.
runtime::Result<SlowTokenizerFiles> read_slow_tokenizer_files(const std::filesystem::path& folder);

/// What a class takes a special token for where the folder does not say.
struct SpecialTokenDefault {
  const char* name;  // "bos_token"
  std::string_view text;
};

/// Completes `tokens` (those that the vocabulary itself marks) with those of the files. First come
/// those of added_tokens_decoder or added_tokens.json, then the special tokens. Special tokens that
/// are no token yet get the next ids. Errors name the entry: kInvalidArgument (an id that is no
/// number or is taken).
runtime::Result<std::vector<AddedToken>> slow_added_tokens(
    const SlowTokenizerFiles& files, std::span<const SpecialTokenDefault> defaults,
    const Vocabulary& vocabulary, std::vector<AddedToken> tokens);

/// Sets the special tokens' texts and ids that a class takes for granted; add_tokenizer_config then
/// sets what the files say.
void add_special_token_defaults(const SlowTokenizerFiles& files,
                                std::span<const SpecialTokenDefault> defaults,
                                TokenizerPipeline& pipeline);

/// add_bos_token and add_eos_token of tokenizer_config.json, or what the class does without them; a
/// token that the folder does not define is not added. To be called once the special ids are known.
/// Errors: kInvalidArgument (neither true nor false).
runtime::Status add_begin_and_end(const SlowTokenizerFiles& files, bool bos_otherwise,
                                  bool eos_otherwise, TokenizerPipeline& pipeline);

}  // namespace rl
