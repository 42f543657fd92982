// The special tokens that the files next to a vocabulary name: bos_token and its like, a model's
// own (image_token), and those without a name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rl/tokenizer/added_tokens.h"
#include "rl/tokenizer/vocabulary_files.h"
#include "runtime/core/result.h"

namespace rl {

struct NamedSpecialToken {
  std::string name;  // "bos_token"
  AddedToken token;  // without an id
};

/// In the order in which transformers adds those that a vocabulary lacks. special_tokens_map.json
/// goes before tokenizer_config.json, but is not heeded where that has an added_tokens_decoder.
/// `defaults` stand in for what neither mentions. Errors name the token.
runtime::Result<std::vector<NamedSpecialToken>> named_special_tokens(
    const SlowTokenizerFiles& files, std::span<const SpecialTokenDefault> defaults);

/// extra_special_tokens or additional_special_tokens, in the order of the list.
runtime::Result<std::vector<AddedToken>> extra_special_tokens(const SlowTokenizerFiles& files);

/// The files set this token to null: a class's default for it does not hold.
bool denies_special_token(const SlowTokenizerFiles& files, const char* name);

}  // namespace rl
