// An evaluation as one HTML page.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rl/report/evaluation.h"

namespace rl {

struct EvaluationPageOptions {
  std::string title;                                       // of the model
  std::vector<std::pair<std::string, std::string>> facts;  // how it was done: name and value
  std::int64_t prompts_max =
      1000;  // with their answers on the page; it says how many were left out
};

/// A page that needs nothing besides itself: the summaries as a table, then each prompt with its
/// answers. The prompts can be narrowed to those with a wrong answer.
std::string evaluation_html(const std::vector<EvaluationSummary>& summaries,
                            const std::vector<EvaluatedPrompt>& prompts,
                            const EvaluationPageOptions& options);

}  // namespace rl
