// Unigram: of all ways to cut a piece into tokens, the one with the highest sum of log-probabilities. Kudo 2018, arXiv:1804.10959.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "rl/text/tokenizer_model.h"
#include "rl/text/tokenizer_trie.h"

namespace rl {

class Unigram final : public TokenModel {
 public:
  /// `scores` by id. Characters without a token score ten below the lowest token and become `unknown_id`, runs of them one
  /// id; with `byte_fallback` they become the tokens of their bytes where all of those exist.
  Unigram(Vocabulary vocabulary, std::vector<double> scores, std::int32_t unknown_id, bool byte_fallback);

  std::unique_ptr<ModelScratch> make_scratch() const override;
  void encode(std::string_view piece, ModelScratch& scratch, std::vector<std::int32_t>& ids) const override;

 private:
  struct Scratch;
  void find_best_path(std::string_view piece, Scratch& scratch) const;
  void add_unknown(std::string_view text, std::vector<std::int32_t>& ids) const;

  std::vector<double> scores_;
  ByteTrie trie_;
  double unknown_score_ = 0;
  std::int32_t unknown_id_;
  bool byte_fallback_;
  std::array<std::int32_t, 256> fallback_ids_{};  // of <0xNN>; -1: none
};

/// Errors: kInvalidArgument (vocab is not a list of [token, score], no unk_id), ...
runtime::Result<std::unique_ptr<TokenModel>> unigram_from_json(const nlohmann::json& model);

}  // namespace rl
