// TokenModel: turns one piece of pre-tokenized text into ids. One small class per kind of model.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "rl/tokenizer/aligned_text.h"
#include "rl/tokenizer/vocabulary.h"
#include "runtime/core/result.h"

namespace rl {

/// Working memory of a model, one per thread at a time; keeps caches between pieces. Made by the
/// model that uses it.
class ModelScratch {
 public:
  virtual ~ModelScratch() = default;
};

/// Immutable; shared by any number of threads.
class TokenModel {
 public:
  explicit TokenModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  TokenModel(const TokenModel&) = delete;
  TokenModel& operator=(const TokenModel&) = delete;
  virtual ~TokenModel() = default;

  const Vocabulary& vocabulary() const { return vocabulary_; }

  /// "BPE", "Unigram", "WordPiece" or "WordLevel".
  virtual std::string_view kind() const = 0;

  virtual std::unique_ptr<ModelScratch> make_scratch() const = 0;

  /// Appends the ids of `piece`, valid UTF-8 and not empty. `scratch` comes from this model's
  /// make_scratch.
  virtual void encode(std::string_view piece, ModelScratch& scratch,
                      std::vector<std::int32_t>& ids) const = 0;

  /// The same, and appends which bytes of the piece each token stands for; slower.
  virtual void encode_ranges(std::string_view piece, ModelScratch& scratch,
                             std::vector<std::int32_t>& ids, std::vector<Piece>& ranges) const = 0;

 private:
  Vocabulary vocabulary_;
};

/// Builds the "model" of a tokenizer.json: BPE, Unigram, WordPiece, WordLevel. `pieces_are_bytes`:
/// a deferred ByteLevel pre-tokenizer hands over raw bytes (BPE only). kUnimplemented names
/// anything that would tokenize differently.
runtime::Result<std::unique_ptr<TokenModel>> token_model_from_json(const nlohmann::json& json,
                                                                   bool pieces_are_bytes);

/// The object token -> id that BPE, WordPiece and WordLevel hold.
runtime::Result<Vocabulary> vocabulary_from_json(const nlohmann::json& model);

}  // namespace rl
