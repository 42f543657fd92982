// Normalizers that use SentencePiece's table of replacements: as SentencePiece itself does, and as
// Hugging Face's "Precompiled" does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "rl/tokenizer/charsmap.h"
#include "rl/tokenizer/normalizer.h"
#include "runtime/core/result.h"

namespace rl {

/// What a SentencePiece model's normalizer_spec (and trainer_spec) ask for.
struct SentencePieceNormalizerOptions {
  CharsMap charsmap = {};
  std::vector<std::string> kept = {};  // user-defined symbols: left as they are
  bool add_dummy_prefix = true;  // a space before the text (behind it with whitespace_as_suffix)
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;  // U+0020 becomes U+2581
  bool whitespace_as_suffix = false;
};

/// Exactly SentencePiece's Normalizer::Normalize.
std::unique_ptr<Normalizer> make_sentencepiece_normalizer(SentencePieceNormalizerOptions options);

/// {"type": "Precompiled", "precompiled_charsmap": base64}: as Hugging Face's tokenizers apply it,
/// which is by grapheme and differs from SentencePiece in corner cases. Errors: kInvalidArgument
/// (no base64, a damaged table).
runtime::Result<std::unique_ptr<Normalizer>> precompiled_from_json(const nlohmann::json& component);

}  // namespace rl
