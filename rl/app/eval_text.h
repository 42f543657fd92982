// The summaries of an evaluation for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rl/report/evaluation.h"

namespace rl {

/// A block per data source: a line per figure, with its interval.
std::string summary_text(const std::vector<EvaluationSummary>& summaries);

/// A list of objects; estimates are {"value", "low", "high"}.
nlohmann::ordered_json summary_json(const std::vector<EvaluationSummary>& summaries);

}  // namespace rl
