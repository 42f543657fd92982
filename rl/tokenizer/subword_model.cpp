#include "rl/tokenizer/subword_model.h"

#include <nlohmann/json.hpp>

#include "rl/tokenizer/bpe.h"
#include "rl/tokenizer/json_fields.h"
#include "rl/tokenizer/unigram.h"
#include "rl/tokenizer/wordpiece.h"

namespace rl {

using nlohmann::json;
using runtime::Result;

Result<Vocabulary> vocabulary_from_json(const json& model) {
  const json* vocab = json_member(model, "vocab");
  if (vocab == nullptr || !vocab->is_object())
    return runtime::invalid_argument("vocab should be an object, token to id");
  std::vector<std::pair<std::string_view, std::int64_t>> tokens;
  tokens.reserve(vocab->size());
  for (auto it = vocab->begin(); it != vocab->end(); ++it) {
    if (!it->is_number_unsigned() || it->get<std::uint64_t>() > INT32_MAX) {
      return runtime::invalid_argument("vocab: the id of \"" + it.key() +
                                       "\" is not a number from 0");
    }
    tokens.emplace_back(it.key(), it->get<std::int64_t>());
  }
  return Vocabulary::make(tokens);
}

Result<std::unique_ptr<TokenModel>> token_model_from_json(const json& model,
                                                          bool pieces_are_bytes) {
  // Files written before types were named hold a BPE (with merges) or a Unigram or WordPiece
  // otherwise recognisable.
  auto type = json_string_or(model, "type", json_member(model, "merges") != nullptr ? "BPE" : "");
  if (!type.ok()) return type.status();
  if (*type == "BPE") return bpe_from_json(model, pieces_are_bytes);
  if (pieces_are_bytes) return runtime::internal_error("only a BPE takes raw bytes");
  if (*type == "Unigram") return unigram_from_json(model);
  if (*type == "WordPiece") return wordpiece_from_json(model);
  if (*type == "WordLevel") return wordlevel_from_json(model);
  return unsupported_component("model", type->empty() ? "without a type" : *type);
}

}  // namespace rl
