// WordPiece, the longest tokens from the left, and WordLevel, whole words only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "rl/tokenizer/subword_model.h"

namespace rl {

class WordPiece final : public TokenModel {
 public:
  /// Tokens inside a word carry `continuing_prefix`. A word that cannot be spelled, or is longer
  /// than `word_characters_max`, is `unknown_id`.
  WordPiece(Vocabulary vocabulary, std::int32_t unknown_id, std::string continuing_prefix,
            std::size_t word_characters_max);

  std::string_view kind() const override { return "WordPiece"; }
  std::unique_ptr<ModelScratch> make_scratch() const override;
  void encode(std::string_view piece, ModelScratch& scratch,
              std::vector<std::int32_t>& ids) const override;
  void encode_ranges(std::string_view piece, ModelScratch& scratch, std::vector<std::int32_t>& ids,
                     std::vector<Piece>& ranges) const override;

 private:
  void spell(std::string_view piece, ModelScratch& scratch, std::vector<std::int32_t>& ids,
             std::vector<Piece>* ranges) const;

  std::int32_t unknown_id_;
  std::string continuing_prefix_;
  std::size_t word_characters_max_;
};

class WordLevel final : public TokenModel {
 public:
  WordLevel(Vocabulary vocabulary, std::int32_t unknown_id)
      : TokenModel(std::move(vocabulary)), unknown_id_(unknown_id) {}

  std::string_view kind() const override { return "WordLevel"; }
  std::unique_ptr<ModelScratch> make_scratch() const override;
  void encode(std::string_view piece, ModelScratch& scratch,
              std::vector<std::int32_t>& ids) const override;
  void encode_ranges(std::string_view piece, ModelScratch& scratch, std::vector<std::int32_t>& ids,
                     std::vector<Piece>& ranges) const override;

 private:
  std::int32_t unknown_id_;
};

/// Errors: kInvalidArgument (the unknown token is not in the vocabulary), ...
runtime::Result<std::unique_ptr<TokenModel>> wordpiece_from_json(const nlohmann::json& model);
runtime::Result<std::unique_ptr<TokenModel>> wordlevel_from_json(const nlohmann::json& model);

}  // namespace rl
