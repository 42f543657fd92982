#include "rl/tokenizer/bpe.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "rl/tokenizer/bytes.h"
#include "rl/tokenizer/json_fields.h"
#include "rl/tokenizer/piece_cache.h"
#include "rl/tokenizer/unicode_text.h"

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

namespace {}  // namespace

struct Bpe::Scratch final : ModelScratch {
  PieceCache cache;
  Symbols symbols;
  MergeScratch merge;
};

Bpe::Bpe(Vocabulary vocabulary, MergeTable merges, BpeOptions options)
    : TokenModel(std::move(vocabulary)), merges_(std::move(merges)), options_(std::move(options)) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<std::uint8_t>(byte);
    std::string spelled;
    append_utf8(options_.pieces_are_bytes ? byte_to_character(value) : static_cast<char32_t>(value),
                spelled);
    byte_ids_[value] = this->vocabulary().find(spelled).value_or(-1);
    fallback_ids_[value] = this->vocabulary().find(byte_token(value)).value_or(-1);
  }
  split_words_ = !options_.pieces_are_bytes && words_never_join();
}

// Whether every token with word marks has them all in front. Then nothing merges across the
// beginning of a word. So a text that comes as one piece (Llama 2) can still be encoded, and
// cached, word by word.
bool Bpe::words_never_join() const {
  if (!options_.continuing_prefix.empty() || !options_.end_suffix.empty() || options_.ignore_merges)
    return false;
  if (!vocabulary().find(kWordMark)) return false;
  for (std::int32_t id = 0; id < vocabulary().size(); ++id) {
    std::string_view token = vocabulary().token(id);
    while (token.starts_with(kWordMark)) token.remove_prefix(kWordMark.size());
    if (token.find(kWordMark) != std::string_view::npos) return false;
  }
  return true;
}

std::unique_ptr<ModelScratch> Bpe::make_scratch() const { return std::make_unique<Scratch>(); }

void Bpe::encode(std::string_view piece, ModelScratch& model_scratch, Ids& ids) const {
  auto& scratch = static_cast<Scratch&>(model_scratch);
  scratch.symbols.with_lengths = false;
  while (!piece.empty()) {
    const std::string_view word = split_words_ ? first_word(piece) : piece;
    piece.remove_prefix(word.size());
    if (scratch.cache.find(word, ids)) continue;
    split(word, scratch);
    scratch.cache.insert(word, scratch.symbols.ids);
    ids.insert(ids.end(), scratch.symbols.ids.begin(), scratch.symbols.ids.end());
  }
}

void Bpe::encode_ranges(std::string_view piece, ModelScratch& model_scratch, Ids& ids,
                        std::vector<Piece>& ranges) const {
  auto& scratch = static_cast<Scratch&>(model_scratch);
  scratch.symbols.with_lengths = true;
  std::uint32_t at = 0;
  while (!piece.empty()) {
    const std::string_view word = split_words_ ? first_word(piece) : piece;
    piece.remove_prefix(word.size());
    split(word, scratch);
    ids.insert(ids.end(), scratch.symbols.ids.begin(), scratch.symbols.ids.end());
    for (std::uint32_t length : scratch.symbols.lengths) {
      ranges.push_back({at, at + length});
      at += length;
    }
  }
}

void Bpe::split(std::string_view word, Scratch& scratch) const {
  Symbols& symbols = scratch.symbols;
  symbols.clear();
  if (options_.ignore_merges && find_whole(word, symbols)) return;
  if (options_.pieces_are_bytes) {
    start_with_bytes(word, symbols);
  } else {
    start_with_characters(word, symbols);
  }
  apply_merges(merges_, symbols.ids, scratch.merge,
               symbols.with_lengths ? &symbols.lengths : nullptr);
}

// A word begins at a mark that follows anything but a mark.
std::string_view Bpe::first_word(std::string_view piece) const {
  std::size_t marks = 0;
  while (piece.substr(marks).starts_with(kWordMark)) marks += kWordMark.size();
  return piece.substr(0, piece.find(kWordMark, marks));
}

bool Bpe::find_whole(std::string_view piece, Symbols& symbols) const {
  std::string spelled;
  const std::size_t length = piece.size();
  if (options_.pieces_are_bytes) {
    append_byte_characters(piece, spelled);
    piece = spelled;
  }
  auto id = vocabulary().find(piece);
  if (id) symbols.add(*id, length);
  return id.has_value();
}

void Bpe::start_with_bytes(std::string_view piece, Symbols& symbols) const {
  Unknown unknown;
  for (char c : piece) {
    const std::int32_t id = byte_ids_[static_cast<unsigned char>(c)];
    if (id < 0) {
      add_unknown(1, unknown, symbols);
      continue;
    }
    flush(unknown, symbols);
    symbols.add(id, 1);
  }
  flush(unknown, symbols);
}

void Bpe::start_with_characters(std::string_view piece, Symbols& symbols) const {
  Unknown unknown;
  std::string decorated;
  for (std::size_t at = 0, length = 0; at < piece.size(); at += length) {
    length = utf8_length(piece[at]);
    std::string_view character = piece.substr(at, length);
    if (!options_.continuing_prefix.empty() || !options_.end_suffix.empty()) {
      decorated = at == 0 ? "" : options_.continuing_prefix;
      decorated += character;
      if (at + length == piece.size()) decorated += options_.end_suffix;
      character = decorated;
    }
    if (auto id = find_character(character)) {
      flush(unknown, symbols);
      symbols.add(*id, length);
    } else if (!options_.byte_fallback || !start_with_fallback_bytes(character, symbols)) {
      add_unknown(length, unknown, symbols);
    }
  }
  flush(unknown, symbols);
}

std::optional<std::int32_t> Bpe::find_character(std::string_view character) const {
  if (character.size() > 1) return vocabulary().find(character);
  const std::int32_t id = byte_ids_[static_cast<unsigned char>(character[0])];
  return id >= 0 ? std::optional(id) : std::nullopt;
}

bool Bpe::start_with_fallback_bytes(std::string_view character, Symbols& symbols) const {
  const auto id_of = [this](char c) { return fallback_ids_[static_cast<unsigned char>(c)]; };
  if (std::any_of(character.begin(), character.end(), [&](char c) { return id_of(c) < 0; }))
    return false;
  for (char c : character) symbols.add(id_of(c), 1);
  return true;
}

void Bpe::add_unknown(std::size_t length, Unknown& pending, Symbols& symbols) const {
  if (!options_.fuse_unknown) flush(pending, symbols);
  pending.id = options_.unknown_id;
  pending.length += length;
}

void Bpe::flush(Unknown& pending, Symbols& symbols) {
  if (pending.id) symbols.add(*pending.id, pending.length);
  pending = {};
}

namespace {

using MergePair = std::pair<std::string_view, std::string_view>;

// A merge is ["a", "b"], or "a b" in older files.
Result<MergePair> merge_from_json(const json& merge) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return MergePair(merge[0].get_ref<const std::string&>(),
                     merge[1].get_ref<const std::string&>());
  }
  if (merge.is_string()) {
    const std::string_view text = merge.get_ref<const std::string&>();
    const std::size_t space = text.find(' ');
    if (space != std::string_view::npos && text.find(' ', space + 1) == std::string_view::npos) {
      return MergePair(text.substr(0, space), text.substr(space + 1));
    }
  }
  return runtime::invalid_argument("is not a pair of tokens");
}

Result<MergeTable> merges_from_json(const json& model, const Vocabulary& vocabulary,
                                    std::string_view continuing_prefix) {
  auto list = json_array(model, "merges");
  if (!list.ok()) return list.status();
  std::vector<MergePair> merges;
  merges.reserve((*list)->size());
  for (const json& member : **list) {
    auto merge = merge_from_json(member);
    if (!merge.ok()) return merge.status().with_context("merge " + std::to_string(merges.size()));
    merges.push_back(*merge);
  }
  return make_merges(vocabulary, merges, continuing_prefix);
}

Result<BpeOptions> options_from_json(const json& model, const Vocabulary& vocabulary) {
  auto fallback = json_bool_or(model, "byte_fallback", false);
  auto ignore_merges = json_bool_or(model, "ignore_merges", false);
  auto fuse = json_bool_or(model, "fuse_unk", false);
  for (const auto* field : {&fallback, &ignore_merges, &fuse}) {
    if (!field->ok()) return field->status();
  }
  auto unknown = json_string_or(model, "unk_token", "");
  auto prefix = json_string_or(model, "continuing_subword_prefix", "");
  auto suffix = json_string_or(model, "end_of_word_suffix", "");
  for (const auto* field : {&unknown, &prefix, &suffix}) {
    if (!field->ok()) return field->status();
  }
  const json* dropout = json_member(model, "dropout");
  if (dropout != nullptr && *dropout != 0.0)
    return runtime::unimplemented("dropout is not supported; set it to null");
  BpeOptions options;
  options.byte_fallback = *fallback;
  options.ignore_merges = *ignore_merges;
  options.fuse_unknown = *fuse;
  options.continuing_prefix = *prefix;
  options.end_suffix = *suffix;
  if (!unknown->empty()) {
    options.unknown_id = vocabulary.find(*unknown);
    if (!options.unknown_id)
      return runtime::invalid_argument("unk_token " + std::string(*unknown) +
                                       " is not in the vocabulary");
  }
  return options;
}

}  // namespace

Result<std::unique_ptr<TokenModel>> bpe_from_json(const json& model, bool pieces_are_bytes) {
  auto vocabulary = vocabulary_from_json(model);
  if (!vocabulary.ok()) return vocabulary.status();
  auto options = options_from_json(model, *vocabulary);
  if (!options.ok()) return options.status();
  options->pieces_are_bytes = pieces_are_bytes;
  auto merges = merges_from_json(model, *vocabulary, options->continuing_prefix);
  if (!merges.ok()) return merges.status();
  return std::unique_ptr<TokenModel>(
      std::make_unique<Bpe>(std::move(*vocabulary), std::move(*merges), std::move(*options)));
}

}  // namespace rl
