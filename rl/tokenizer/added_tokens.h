// Added tokens: strings that are one token wherever they occur in a text, found before anything
// else is done to it. Special ones (begin, end, roles) can be left out on decoding.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "rl/tokenizer/normalizer.h"
#include "rl/tokenizer/regex.h"
#include "rl/tokenizer/trie.h"
#include "rl/tokenizer/vocabulary.h"
#include "runtime/core/result.h"

namespace rl {

struct AddedToken {
  std::int32_t id = -1;
  std::string content;
  bool special = false;
  bool single_word = false;  // not inside a longer word
  bool strip_left = false;   // takes the white space before it
  bool strip_right = false;  // and after it
  bool normalized = false;   // looked for in the normalized text rather than in the original
  bool in_text = true;     // else never looked for: what SentencePiece calls a control symbol is no
                           // part of any text
  bool silent = false;     // decodes to nothing
  std::string shown = {};  // what it decodes to: its normalized form where it is looked for in
                           // normalized text; set by AddedTokens::make
};

/// A stretch of text, or an added token that was found there (id >= 0).
struct Segment {
  std::string_view text;
  std::int32_t id = -1;
};

/// Immutable.
class AddedTokens {
 public:
  AddedTokens() = default;

  /// `normalizer` (may be null: the content stands for itself) is applied to the content of
  /// normalized tokens. Errors: as Normalizer::apply.
  static runtime::Result<AddedTokens> make(std::vector<AddedToken> tokens,
                                           const Normalizer* normalizer);

  /// Appends the segments of `text`, none of them empty text. The leftmost match counts, of several
  /// there the longest. A token inside the white space that the one before it took is a segment
  /// too, which then overlaps.
  void split_original(std::string_view text, std::vector<Segment>& segments) const {
    split(original_, text, segments);
  }
  void split_normalized(std::string_view text, std::vector<Segment>& segments) const {
    split(normalized_, text, segments);
  }

  /// Null when the id is not of an added token.
  const AddedToken* find(std::int32_t id) const;
  const AddedToken* find(std::string_view content) const;
  const std::vector<AddedToken>& tokens() const { return tokens_; }

 private:
  void split(const ByteTrie& trie, std::string_view text, std::vector<Segment>& segments) const;

  std::vector<AddedToken> tokens_;
  std::unordered_map<std::int32_t, std::size_t> by_id_;
  std::unordered_map<std::string, std::size_t> by_content_;
  ByteTrie original_;  // values are indices of tokens_
  ByteTrie normalized_;
};

/// {"content": "</s>", "lstrip": false, ...}, or a plain string: with `special_otherwise` a special
/// token that is found in the original text. Without an id. Errors: kInvalidArgument.
runtime::Result<AddedToken> added_token_from_json(const nlohmann::json& entry,
                                                  bool special_otherwise);

/// The "added_tokens" of a tokenizer.json (missing: none). Errors name the entry.
runtime::Result<std::vector<AddedToken>> added_tokens_from_json(const nlohmann::json& tokenizer);

}  // namespace rl
