#include "rl/feed/vocabulary_check.h"

namespace rl {

runtime::Status check_vocabulary(std::span<const std::int32_t> ids, std::int64_t vocabulary,
                                 const Tokenizer& tokenizer, const std::string& where) {
  if (vocabulary < 1) return {};
  for (const std::int32_t id : ids) {
    if (id >= 0 && id < vocabulary) continue;
    return runtime::invalid_argument(
        where + ": token " + std::to_string(id) + " ('" + tokenizer.id_to_token(id) +
        "') is outside the model's vocabulary of " + std::to_string(vocabulary) +
        ": the tokenizer next to the weights is another model's; put there the one that the model "
        "was trained with");
  }
  return {};
}

}  // namespace rl
