// Pre-tokenizers: cut normalized text into the pieces that the model then encodes one by one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "rl/tokenizer/aligned_text.h"
#include "rl/tokenizer/regex.h"
#include "runtime/core/result.h"
#include "runtime/core/status.h"

namespace rl {

/// A text on its way through the pre-tokenizers: first one piece, in the end many. None is empty.
struct PieceList {
  std::string_view text;  // what the pieces index; views the caller's text, or `rewritten`
  std::vector<Piece> pieces;
  bool at_start = false;  // the first piece begins where the original text begins
  bool aligned =
      false;  // `origins` says where each byte of `text` came from; to be set after reset()
  std::vector<Piece> origins;

  // Storage that keeps its capacity from one text to the next.
  std::string rewritten;
  std::string rewriting;
  std::vector<Piece> next;
  std::vector<Piece> rewriting_origins;

  /// Starts over with all of `whole` as one piece, or none when it is empty.
  void reset(std::string_view whole, bool starts_original);

  std::string_view view(const Piece& piece) const {
    return text.substr(piece.begin, piece.end - piece.begin);
  }
};

/// Immutable; shared by any number of threads, each with lists and its own scratch.
class PreTokenizer {
 public:
  PreTokenizer() = default;
  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;
  virtual ~PreTokenizer() = default;

  /// Splits or rewrites every piece. Errors: kResourceExhausted (a pattern gave up on the text).
  virtual runtime::Status apply(PieceList& list, RegexScratch& scratch) const = 0;

  /// If the last step maps bytes to GPT-2's characters, makes it skip that and returns true. A
  /// byte-level model can then look bytes up directly, which is several times faster than spelling
  /// them out.
  virtual bool defer_byte_level() { return false; }
};

/// Builds the "pre_tokenizer" of a tokenizer.json: ByteLevel, Split, Digits, Metaspace, Whitespace,
/// WhitespaceSplit, Punctuation, BertPreTokenizer, CharDelimiterSplit, UnicodeScripts, FixedLength,
/// Sequence. kUnimplemented names any other.
runtime::Result<std::unique_ptr<PreTokenizer>> pre_tokenizer_from_json(const nlohmann::json& json,
                                                                       int depth = 0);

/// Splits by each pattern in turn, keeping matches and what lies between, then maps bytes to
/// GPT-2's characters. This is how GGUF names pre-tokenizers. Errors: as Regex::compile.
runtime::Result<std::unique_ptr<PreTokenizer>> make_byte_level_pre_tokenizer(
    std::span<const std::string_view> patterns);

/// GPT-2's pattern.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Qwen2's: Llama 3's with single digits.
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace rl
