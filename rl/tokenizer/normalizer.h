// Normalizers: changes to text before it is split. Each is a pure function of text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "rl/tokenizer/aligned_text.h"
#include "rl/tokenizer/regex.h"
#include "runtime/core/result.h"
#include "runtime/core/status.h"

namespace rl {

/// Immutable; shared by any number of threads, each with its own scratch.
class Normalizer {
 public:
  Normalizer() = default;
  Normalizer(const Normalizer&) = delete;
  Normalizer& operator=(const Normalizer&) = delete;
  virtual ~Normalizer() = default;

  /// Rewrites valid UTF-8 in place. Errors: kResourceExhausted (a pattern that gave up, a text too
  /// long to normalize).
  virtual runtime::Status apply(std::string& text, RegexScratch& scratch) const = 0;

  /// The same, keeping track of where everything came from; slower.
  virtual runtime::Status apply_aligned(AlignedText& text, RegexScratch& scratch) const = 0;
};

/// Builds the "normalizer" of a tokenizer.json: NFC, NFD, NFKC, NFKD, Lowercase, Strip,
/// StripAccents, Replace, Prepend, BertNormalizer, ByteLevel, Nmt, Precompiled, Sequence.
/// kUnimplemented names any other.
runtime::Result<std::unique_ptr<Normalizer>> normalizer_from_json(const nlohmann::json& json,
                                                                  int depth = 0);

/// Unicode's normal form C.
std::unique_ptr<Normalizer> make_nfc();

/// Puts `prefix` before any text that is not empty.
std::unique_ptr<Normalizer> make_prepend(std::string prefix);

/// Replaces every occurrence of `from`.
std::unique_ptr<Normalizer> make_replace(std::string from, std::string to);

std::unique_ptr<Normalizer> make_normalizer_sequence(
    std::vector<std::unique_ptr<Normalizer>> parts);

}  // namespace rl
