// Changes to a tokenizer.json by the files next to it, as in a folder that transformers 5 loads.
// These are tokens and options that only tokenizer_config.json, special_tokens_map.json or
// added_tokens.json name.
#pragma once

#include <nlohmann/json.hpp>

#include "rl/tokenizer/pipeline.h"
#include "rl/tokenizer/vocabulary_files.h"
#include "runtime/core/status.h"

namespace rl {

/// add_prefix_space and legacy, where the files say them and the class heeds them. Rewrites the
/// pre-tokenizer of `tokenizer`, and for the Llama classes its normalizer and decoder. Errors:
/// kInvalidArgument (an option that is neither true nor false).
runtime::Status apply_space_options(const SlowTokenizerFiles& files, nlohmann::json& tokenizer);

/// Tokens that the tokenizer.json lacks get the next ids, flags that differ are the files';
/// split_special_tokens and clean_up_tokenization_spaces are set. Errors name the file and the
/// entry.
runtime::Status apply_added_tokens(const SlowTokenizerFiles& files, TokenizerPipeline& pipeline);

/// Special tokens that the class of a tokenizer takes for granted where the files say nothing and
/// the vocabulary has them.
void add_class_defaults(const SlowTokenizerFiles& files, TokenizerPipeline& pipeline);

}  // namespace rl
