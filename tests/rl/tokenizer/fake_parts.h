// Parts of a tokenizer that tests can foresee: a model with one token a byte, small letters, and
// vocabularies in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rl/tokenizer/normalizer.h"
#include "rl/tokenizer/subword_model.h"
#include "rl/tokenizer/vocabulary.h"

namespace rl::testing {

/// The tokens with the ids 0, 1, ...
inline Vocabulary vocabulary_of(const std::vector<std::string>& tokens) {
  std::vector<std::pair<std::string_view, std::int64_t>> entries;
  for (const std::string& token : tokens)
    entries.emplace_back(token, static_cast<std::int64_t>(entries.size()));
  auto made = Vocabulary::make(entries);
  return made.ok() ? std::move(*made) : Vocabulary();
}

/// Encodes each byte as a token, whatever the vocabulary has.
class ByteModel final : public TokenModel {
 public:
  explicit ByteModel(Vocabulary vocabulary = {}, std::string kind = "bytes")
      : TokenModel(std::move(vocabulary)), kind_(std::move(kind)) {}
  std::string_view kind() const override { return kind_; }
  std::unique_ptr<ModelScratch> make_scratch() const override {
    ++scratches;
    return std::make_unique<ModelScratch>();
  }
  void encode(std::string_view piece, ModelScratch&,
              std::vector<std::int32_t>& ids) const override {
    for (const char c : piece) ids.push_back(static_cast<unsigned char>(c));
  }
  void encode_ranges(std::string_view piece, ModelScratch& scratch, std::vector<std::int32_t>& ids,
                     std::vector<Piece>& ranges) const override {
    encode(piece, scratch, ids);
    for (std::uint32_t i = 0; i < piece.size(); ++i) ranges.push_back({i, i + 1});
  }

  mutable int scratches = 0;

 private:
  std::string kind_;
};

/// Makes ASCII's capitals small, and gives up on a text with a '!'.
class SmallLetters final : public Normalizer {
 public:
  runtime::Status apply(std::string& text, RegexScratch&) const override {
    if (text.find('!') != text.npos) return runtime::resource_exhausted("gave up on " + text);
    for (char& c : text) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return {};
  }
  runtime::Status apply_aligned(AlignedText& text, RegexScratch& scratch) const override {
    return apply(text.text, scratch);
  }
};

}  // namespace rl::testing
