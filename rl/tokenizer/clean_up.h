// clean_up_tokenization_spaces: takes out the spaces that word tokenizers leave before punctuation
// and English endings.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rl {

/// As transformers does after decoding.
std::string clean_up_spaces(std::string text);

/// How many leading bytes can be cleaned up before the rest of a text is known. They end at the
/// last space behind a letter or figure.
std::size_t cleanable_length(std::string_view text);

}  // namespace rl
