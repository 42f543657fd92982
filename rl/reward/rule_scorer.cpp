#include "rl/reward/rule_scorer.h"

#include <utility>

namespace rl {

using runtime::Result;
using runtime::Status;

RuleScorer::RuleScorer() {
  for (const std::string& name : reward_rules()) {
    Result<Rule> rule = Rule::create(name);
    if (rule.ok()) rules_.emplace(name, std::move(*rule));
  }
}

Result<const Rule*> RuleScorer::rule_of(const ScoreRequest& request) const {
  if (rule_) return &*rule_;
  const Result<std::string> name = rule_for_data_source(request.data_source);
  if (!name.ok()) return name.status();
  return &rules_.at(*name);
}

Result<ScoredBatch> RuleScorer::score(std::span<const ScoreRequest> requests) {
  ScoredBatch batch;
  for (const ScoreRequest& request : requests) {
    const Result<const Rule*> rule = rule_of(request);
    if (!rule.ok()) return rule.status().with_context(request.where);
    Result<RuleVerdict> judged = (*rule)->judge(request.response, request.ground_truth);
    Score score;
    score.rule = (*rule)->name();
    if (judged.ok()) {
      score.value = judged->score;
      score.compared = std::move(judged->compared);
    } else if (judged.status().code() ==
               runtime::ErrorCode::kResourceExhausted) {  // a pattern that backtracks: this
                                                          // response's fault
      score.failure = ScoreFailure::kError;
      score.message = judged.status().message();
      ++batch.counts.errors;
    } else {
      return judged.status().with_context(request.where);
    }
    batch.scores.push_back(std::move(score));
  }
  return batch;
}

Status RuleScorer::check_row(const ScoreRequest& row) const {
  const Result<const Rule*> rule = rule_of(row);
  if (!rule.ok()) return rule.status();
  return (*rule)->check(row.ground_truth);
}

}  // namespace rl
