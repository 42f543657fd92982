#include "rl/tokenizer/wordpiece.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rl/tokenizer/json_fields.h"
#include "rl/tokenizer/unicode_text.h"

namespace rl {

using nlohmann::json;
using runtime::Result;

namespace {

struct WordPieceScratch final : ModelScratch {
  std::string candidate;
};

Result<std::int32_t> unknown_from_json(const json& model, const Vocabulary& vocabulary) {
  auto token = json_string(model, "unk_token");
  if (!token.ok()) return token.status();
  auto id = vocabulary.find(*token);
  if (!id)
    return runtime::invalid_argument("unk_token " + std::string(*token) +
                                     " is not in the vocabulary");
  return *id;
}

}  // namespace

WordPiece::WordPiece(Vocabulary vocabulary, std::int32_t unknown_id, std::string continuing_prefix,
                     std::size_t word_characters_max)
    : TokenModel(std::move(vocabulary)),
      unknown_id_(unknown_id),
      continuing_prefix_(std::move(continuing_prefix)),
      word_characters_max_(word_characters_max) {}

std::unique_ptr<ModelScratch> WordPiece::make_scratch() const {
  return std::make_unique<WordPieceScratch>();
}

void WordPiece::encode(std::string_view piece, ModelScratch& scratch,
                       std::vector<std::int32_t>& ids) const {
  spell(piece, scratch, ids, nullptr);
}

void WordPiece::encode_ranges(std::string_view piece, ModelScratch& scratch,
                              std::vector<std::int32_t>& ids, std::vector<Piece>& ranges) const {
  spell(piece, scratch, ids, &ranges);
}

void WordPiece::spell(std::string_view piece, ModelScratch& scratch, std::vector<std::int32_t>& ids,
                      std::vector<Piece>* ranges) const {
  const std::size_t first = ids.size();
  const auto add = [&](std::int32_t id, std::size_t begin, std::size_t end) {
    ids.push_back(id);
    if (ranges != nullptr)
      ranges->push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
  };
  const auto characters =
      static_cast<std::size_t>(std::count_if(piece.begin(), piece.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
      }));
  if (characters > word_characters_max_) return add(unknown_id_, 0, piece.size());
  std::string& candidate = static_cast<WordPieceScratch&>(scratch).candidate;
  for (std::size_t start = 0; start < piece.size();) {
    std::size_t end = piece.size();
    for (; end > start; previous_code_point(piece, end)) {
      candidate = start == 0 ? "" : continuing_prefix_;
      candidate += piece.substr(start, end - start);
      if (auto id = vocabulary().find(candidate)) {
        add(*id, start, end);
        break;
      }
    }
    if (end == start) {
      if (ranges != nullptr) ranges->resize(ranges->size() - (ids.size() - first));
      ids.resize(first);
      return add(unknown_id_, 0, piece.size());
    }
    start = end;
  }
}

std::unique_ptr<ModelScratch> WordLevel::make_scratch() const {
  return std::make_unique<ModelScratch>();
}

void WordLevel::encode(std::string_view piece, ModelScratch&,
                       std::vector<std::int32_t>& ids) const {
  ids.push_back(vocabulary().find(piece).value_or(unknown_id_));
}

void WordLevel::encode_ranges(std::string_view piece, ModelScratch& scratch,
                              std::vector<std::int32_t>& ids, std::vector<Piece>& ranges) const {
  encode(piece, scratch, ids);
  ranges.push_back({0, static_cast<std::uint32_t>(piece.size())});
}

Result<std::unique_ptr<TokenModel>> wordpiece_from_json(const json& model) {
  auto vocabulary = vocabulary_from_json(model);
  if (!vocabulary.ok()) return vocabulary.status();
  auto unknown = unknown_from_json(model, *vocabulary);
  if (!unknown.ok()) return unknown.status();
  auto prefix = json_string_or(model, "continuing_subword_prefix", "##");
  if (!prefix.ok()) return prefix.status();
  std::int64_t characters_max = 100;
  if (json_member(model, "max_input_chars_per_word") != nullptr) {
    auto limit = json_integer(model, "max_input_chars_per_word");
    if (!limit.ok()) return limit.status();
    // Spelling a word is quadratic in its length.
    characters_max = std::clamp<std::int64_t>(*limit, 0, 10'000);
  }
  return std::unique_ptr<TokenModel>(
      std::make_unique<WordPiece>(std::move(*vocabulary), *unknown, std::string(*prefix),
                                  static_cast<std::size_t>(characters_max)));
}

Result<std::unique_ptr<TokenModel>> wordlevel_from_json(const json& model) {
  auto vocabulary = vocabulary_from_json(model);
  if (!vocabulary.ok()) return vocabulary.status();
  auto unknown = unknown_from_json(model, *vocabulary);
  if (!unknown.ok()) return unknown.status();
  return std::unique_ptr<TokenModel>(std::make_unique<WordLevel>(std::move(*vocabulary), *unknown));
}

}  // namespace rl
