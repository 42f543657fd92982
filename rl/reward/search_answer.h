// Answers of questions that are searched for, as SQuAD and verl's search_r1 compare them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// What stands in the last <answer>...</answer>; nullopt when there is none.
std::optional<std::string_view> tagged_answer(std::string_view response);

/// Lower case as Python's str.lower(), without ASCII punctuation and the words a, an and the, one
/// space between words.
std::string plain_words(std::string_view text);

/// {"target": ["a", "b"]}, {"target": "a"}, ["a"] or the text itself. Errors: as listed_answers().
runtime::Result<std::vector<std::string>> targets_of(std::string_view ground_truth);

}  // namespace rl
