// Scores by rule: one for all rows, or each row's by its data source.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "rl/reward/rule.h"
#include "rl/reward/scorer.h"

namespace rl {

class RuleScorer : public Scorer {
 public:
  /// Chooses the rule by data source.
  RuleScorer();
  explicit RuleScorer(Rule rule) : rule_(std::move(rule)) {}

  runtime::Result<ScoredBatch> score(std::span<const ScoreRequest> requests) override;
  runtime::Status check_row(const ScoreRequest& row) const override;

 private:
  runtime::Result<const Rule*> rule_of(const ScoreRequest& request) const;

  std::optional<Rule> rule_;
  std::map<std::string, Rule> rules_;  // without rule_: all that need no options
};

}  // namespace rl
