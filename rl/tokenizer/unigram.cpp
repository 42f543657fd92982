#include "rl/tokenizer/unigram.h"

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

namespace {

// The best way to reach a byte offset: by the token `id` that starts at `start`.
struct PathNode {
  double score = 0;
  std::int32_t id = -1;
  std::int32_t start = -1;  // -1: not reached yet
};

}  // namespace

struct Unigram::Scratch final : ModelScratch {
  PieceCache cache;
  std::vector<PathNode> nodes;     // by offset where the token ends
  std::vector<std::int32_t> ends;  // offsets of the best path, last first
};

Unigram::Unigram(Vocabulary vocabulary, std::vector<double> scores, UnigramOptions options)
    : TokenModel(std::move(vocabulary)), scores_(std::move(scores)), options_(std::move(options)) {
  std::vector<std::pair<std::string_view, std::int32_t>> keys;
  for (std::int32_t id = 0; id < this->vocabulary().size(); ++id) {
    if (options_.in_text.empty() || options_.in_text[static_cast<std::size_t>(id)])
      keys.emplace_back(this->vocabulary().token(id), id);
  }
  trie_ = ByteTrie(std::move(keys));
  for (int byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<std::uint8_t>(byte);
    fallback_ids_[value] = this->vocabulary().find(byte_token(value)).value_or(-1);
  }
}

std::unique_ptr<ModelScratch> Unigram::make_scratch() const { return std::make_unique<Scratch>(); }

void Unigram::find_best_path(std::string_view piece, Scratch& scratch) const {
  auto& nodes = scratch.nodes;
  nodes.assign(piece.size() + 1, PathNode{});
  const auto reach = [&](std::size_t start, std::size_t end, std::int32_t id, double score) {
    if (options_.single_precision) score = static_cast<double>(static_cast<float>(score));
    PathNode& node = nodes[end];
    if (node.start >= 0 && score <= node.score) return;
    node = {score, id, static_cast<std::int32_t>(start)};
  };
  for (std::size_t start = 0, width = 0; start < piece.size(); start += width) {
    width = utf8_length(piece[start]);
    const double here = nodes[start].score;
    bool single = false;
    trie_.prefixes(piece.substr(start), [&](std::size_t length, std::int32_t id) {
      reach(start, start + length, id, here + scores_[static_cast<std::size_t>(id)]);
      single |= length == width;
    });
    if (!single) reach(start, start + width, options_.unknown_id, here + options_.unknown_score);
  }
}

void Unigram::encode(std::string_view piece, ModelScratch& model_scratch,
                     std::vector<std::int32_t>& ids) const {
  auto& scratch = static_cast<Scratch&>(model_scratch);
  if (scratch.cache.find(piece, ids)) return;
  const std::size_t first = ids.size();
  follow_best_path(piece, scratch, ids, nullptr);
  scratch.cache.insert(piece, std::span(ids).subspan(first));
}

void Unigram::encode_ranges(std::string_view piece, ModelScratch& model_scratch,
                            std::vector<std::int32_t>& ids, std::vector<Piece>& ranges) const {
  follow_best_path(piece, static_cast<Scratch&>(model_scratch), ids, &ranges);
}

void Unigram::follow_best_path(std::string_view piece, Scratch& scratch,
                               std::vector<std::int32_t>& ids, std::vector<Piece>* ranges) const {
  find_best_path(piece, scratch);
  scratch.ends.clear();
  for (std::size_t end = piece.size(); end > 0;
       end = static_cast<std::size_t>(scratch.nodes[end].start)) {
    scratch.ends.push_back(static_cast<std::int32_t>(end));
  }
  std::size_t start = 0;
  for (std::size_t i = scratch.ends.size(); i-- > 0;) {
    auto end = static_cast<std::size_t>(scratch.ends[i]);
    const std::int32_t id = scratch.nodes[end].id;
    const std::size_t first = ids.size();
    if (id != options_.unknown_id) {
      ids.push_back(id);
    } else {
      while (i > 0 && scratch.nodes[static_cast<std::size_t>(scratch.ends[i - 1])].id ==
                          options_.unknown_id) {
        end = static_cast<std::size_t>(scratch.ends[--i]);
      }
      add_unknown(piece.substr(start, end - start), ids);
    }
    // The bytes of an unknown run all stand for the whole of it.
    if (ranges != nullptr)
      ranges->insert(ranges->end(), ids.size() - first,
                     {static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(end)});
    start = end;
  }
}

// A run of unknown characters. It may spell a token all the same, the unknown token's own text for
// one.
void Unigram::add_unknown(std::string_view text, std::vector<std::int32_t>& ids) const {
  if (auto id = options_.in_text.empty() ? vocabulary().find(text) : std::nullopt) {
    ids.push_back(*id);
    return;
  }
  const auto id_of = [this](char c) { return fallback_ids_[static_cast<unsigned char>(c)]; };
  if (!options_.byte_fallback ||
      std::any_of(text.begin(), text.end(), [&](char c) { return id_of(c) < 0; })) {
    ids.push_back(options_.unknown_id);
    return;
  }
  for (char c : text) ids.push_back(id_of(c));
}

Result<std::unique_ptr<TokenModel>> unigram_from_json(const json& model) {
  auto list = json_array(model, "vocab");
  if (!list.ok()) return list.status();
  auto fallback = json_bool_or(model, "byte_fallback", false);
  if (!fallback.ok()) return fallback.status();
  auto unknown = json_integer(model, "unk_id");
  if (!unknown.ok()) return unknown.status();
  std::vector<std::pair<std::string_view, std::int64_t>> tokens;
  std::vector<double> scores;
  for (const json& entry : **list) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
      return runtime::invalid_argument("vocab entry " + std::to_string(tokens.size()) +
                                       " is not [token, score]");
    }
    tokens.emplace_back(entry[0].get_ref<const std::string&>(),
                        static_cast<std::int64_t>(tokens.size()));
    scores.push_back(entry[1].get<double>());
  }
  if (*unknown < 0 || *unknown >= static_cast<std::int64_t>(tokens.size())) {
    return runtime::invalid_argument("unk_id " + std::to_string(*unknown) +
                                     " is outside the vocabulary");
  }
  auto vocabulary = Vocabulary::make(tokens);
  if (!vocabulary.ok()) return vocabulary.status();
  UnigramOptions options;
  options.unknown_id = static_cast<std::int32_t>(*unknown);
  options.byte_fallback = *fallback;
  options.unknown_score = *std::min_element(scores.begin(), scores.end()) - kUnigramUnknownPenalty;
  return std::unique_ptr<TokenModel>(
      std::make_unique<Unigram>(std::move(*vocabulary), std::move(scores), std::move(options)));
}

}  // namespace rl
