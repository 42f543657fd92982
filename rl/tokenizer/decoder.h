// Decoders: tokens back to text. A chain of steps, each of which rewrites the list of tokens;
// joined, the list is the text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/core/result.h"

namespace rl {

/// Immutable; shared by any number of threads.
class TokenDecoder {
 public:
  TokenDecoder() = default;
  TokenDecoder(const TokenDecoder&) = delete;
  TokenDecoder& operator=(const TokenDecoder&) = delete;
  virtual ~TokenDecoder() = default;

  virtual void decode(std::vector<std::string>& tokens) const = 0;

  /// True for ByteLevel alone: each token stands for bytes whatever its neighbours, so that a
  /// stream can decode it at once.
  virtual bool is_byte_level() const { return false; }
};

/// Builds the "decoder" of a tokenizer.json: ByteLevel, Metaspace, ByteFallback, Fuse, Strip,
/// Replace, WordPiece, BPEDecoder, Sequence. kUnimplemented names any other.
runtime::Result<std::unique_ptr<TokenDecoder>> decoder_from_json(const nlohmann::json& json,
                                                                 int depth = 0);

std::unique_ptr<TokenDecoder> make_byte_level_decoder();

/// As SentencePiece decodes: U+2581 becomes a space, byte tokens become their bytes. The text loses
/// up to `leading_spaces_max` spaces in front: the one that encoding had put there, or all that
/// encoding would have removed.
std::unique_ptr<TokenDecoder> make_sentencepiece_decoder(std::int64_t leading_spaces_max);

}  // namespace rl
