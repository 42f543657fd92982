// TokenizerPipeline: the loaded parts of a tokenizer and how they work together. Internal to
// rl/tokenizer; Tokenizer is the API.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rl/tokenizer/added_tokens.h"
#include "rl/tokenizer/decoder.h"
#include "rl/tokenizer/encoding.h"
#include "rl/tokenizer/normalizer.h"
#include "rl/tokenizer/post_processor.h"
#include "rl/tokenizer/pre_tokenizer.h"
#include "rl/tokenizer/scratch.h"
#include "rl/tokenizer/subword_model.h"
#include "runtime/core/result.h"

namespace rl {

/// Longest text that encode takes; offsets have 32 bits.
inline constexpr std::size_t kTextBytesMax = 512 << 20;

/// Immutable once loaded, but for the pool of scratch memory, which has its own lock.
struct TokenizerPipeline {
  std::unique_ptr<Normalizer> normalizer;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // may be null
  std::unique_ptr<TokenModel> model;
  AddedTokens added_tokens;
  PostProcessor post_processor;
  bool cleans_up_spaces = false;          // decoded text loses the spaces before punctuation
  std::unique_ptr<TokenDecoder> decoder;  // may be null: tokens joined with spaces

  std::optional<std::int32_t> bos_id;
  std::optional<std::int32_t> eos_id;
  std::optional<std::int32_t> pad_id;
  mutable std::once_flag said_padding;
  std::map<std::string, std::string> chat_templates;  // name to Jinja source
  std::map<std::string, std::string> special_token_texts;

  runtime::Result<std::vector<std::int32_t>> encode(std::string_view text,
                                                    bool add_special_tokens) const;

  /// See Tokenizer::encode_with.
  runtime::Result<Encoding> encode_with(std::string_view text, const EncodeOptions& options) const;
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const;

  /// Before spaces are cleaned up.
  std::string decode_as_is(std::span<const std::int32_t> ids, bool skip_special_tokens) const;

  /// What an added token decodes to, or the vocabulary's token; empty for an unknown id.
  std::string_view token(std::int32_t id) const;
  std::optional<std::int32_t> find(std::string_view token) const;
  bool is_special(std::int32_t id) const;
  std::int32_t size() const;

 private:
  runtime::Status check_text(std::string_view text) const;
  runtime::Status encode_plain(std::string_view text, std::vector<std::int32_t>& ids) const;
  runtime::Status encode_aligned(std::string_view text, OffsetUnit unit,
                                 std::vector<std::int32_t>& ids,
                                 std::vector<TokenOffsets>& offsets) const;
  runtime::Status encode_text(std::string_view text, bool at_start, EncodeScratch& scratch,
                              std::vector<std::int32_t>& ids) const;

  mutable ScratchPool scratch_;
};

}  // namespace rl
