// AlignedEncoder: encoding with offsets, the slower way through a tokenizer, which keeps track of
// where every byte came from.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rl/tokenizer/added_tokens.h"
#include "rl/tokenizer/aligned_text.h"
#include "rl/tokenizer/encoding.h"
#include "rl/tokenizer/normalizer.h"
#include "rl/tokenizer/pre_tokenizer.h"
#include "rl/tokenizer/scratch.h"
#include "rl/tokenizer/subword_model.h"
#include "runtime/core/status.h"

namespace rl {

/// What an added token decodes to, or the vocabulary's token; empty for an unknown id.
std::string_view shown_token(const AddedTokens& added, const TokenModel& model, std::int32_t id);

/// Of one text. Borrows everything; normalizer and pre_tokenizer may be null.
class AlignedEncoder {
 public:
  AlignedEncoder(const AddedTokens& added_tokens, const Normalizer* normalizer,
                 const PreTokenizer* pre_tokenizer, const TokenModel& model, EncodeScratch& scratch)
      : added_tokens_(added_tokens),
        normalizer_(normalizer),
        pre_tokenizer_(pre_tokenizer),
        model_(model),
        scratch_(scratch) {}

  /// Fills ids and offsets, in bytes of `text`, which is valid UTF-8. Call it once.
  runtime::Status encode(std::string_view text);

  /// Takes white space at the ends of tokens out of the offsets, which are in characters by now.
  void trim_offsets(bool add_prefix_space);

  std::vector<std::int32_t> ids;
  std::vector<TokenOffsets> offsets;

 private:
  void add_matched(std::int32_t id, TokenOffsets at, std::string_view text);
  runtime::Status encode_text(std::string_view text, std::uint32_t begin);
  runtime::Status encode_segment(std::string_view text, std::span<const Piece> origins,
                                 bool at_start);
  void encode_piece(const Piece& piece);

  const AddedTokens& added_tokens_;
  const Normalizer* normalizer_;
  const PreTokenizer* pre_tokenizer_;
  const TokenModel& model_;
  EncodeScratch& scratch_;
  std::vector<Piece> ranges_;        // of a piece's tokens
  std::vector<std::int32_t> found_;  // a piece's tokens
  // Added tokens by index of ids, with the text there: it may have white space around it, which the
  // token's content has not.
  std::vector<std::pair<std::size_t, std::string>> matched_;
};

}  // namespace rl
