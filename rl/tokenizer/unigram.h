// Unigram: of all ways to cut a piece into tokens, the one with the highest sum of
// log-probabilities. Kudo 2018, arXiv:1804.10959.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "rl/tokenizer/subword_model.h"
#include "rl/tokenizer/trie.h"

namespace rl {

/// How far below the lowest token a character without a token scores.
inline constexpr double kUnigramUnknownPenalty = 10.0;

struct UnigramOptions {
  std::int32_t unknown_id = 0;  // of characters without a token, runs of them one id
  bool byte_fallback =
      false;  // they become the tokens of their bytes instead, where all of those exist
  double unknown_score = 0;  // of a character without a token
  bool single_precision =
      false;  // scores are added up as SentencePiece does, in 32 bits; near ties depend on it
  std::vector<bool> in_text;  // by id: which tokens are found in a text; empty: all
};

class Unigram final : public TokenModel {
 public:
  /// `scores` by id.
  Unigram(Vocabulary vocabulary, std::vector<double> scores, UnigramOptions options);

  std::string_view kind() const override { return "Unigram"; }
  std::unique_ptr<ModelScratch> make_scratch() const override;
  void encode(std::string_view piece, ModelScratch& scratch,
              std::vector<std::int32_t>& ids) const override;
  void encode_ranges(std::string_view piece, ModelScratch& scratch, std::vector<std::int32_t>& ids,
                     std::vector<Piece>& ranges) const override;

 private:
  struct Scratch;
  void find_best_path(std::string_view piece, Scratch& scratch) const;
  void follow_best_path(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& ids,
                        std::vector<Piece>* ranges) const;
  void add_unknown(std::string_view text, std::vector<std::int32_t>& ids) const;

  std::vector<double> scores_;
  ByteTrie trie_;
  UnigramOptions options_;
  std::array<std::int32_t, 256> fallback_ids_{};  // of <0xNN>; -1: none
};

/// Errors: kInvalidArgument (vocab is not a list of [token, score], no unk_id), ...
runtime::Result<std::unique_ptr<TokenModel>> unigram_from_json(const nlohmann::json& model);

}  // namespace rl
