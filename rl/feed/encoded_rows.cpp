#include "rl/feed/encoded_rows.h"

#include "rl/feed/vocabulary_check.h"

namespace rl {

runtime::Status check_readable(std::span<const std::span<const std::int32_t>> parts,
                               std::int64_t longest, const EncodedRowsOptions& options,
                               const Tokenizer& tokenizer, const std::string& where) {
  if (options.context > 0 && longest > options.context) {
    return runtime::invalid_argument(
        where + ": the sequence has " + std::to_string(longest) +
        " tokens, the model's context is " + std::to_string(options.context) +
        ": lower data.max_length to that, with data.truncation=left|right");
  }
  for (const std::span<const std::int32_t> ids : parts) {
    const runtime::Status known = check_vocabulary(ids, options.vocabulary, tokenizer, where);
    if (!known.ok()) return known;
  }
  return {};
}

}  // namespace rl
