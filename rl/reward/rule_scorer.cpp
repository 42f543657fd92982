#include "rl/reward/rule_scorer.h"

#include <utility>
#include <vector>

#include "rl/data/json_text.h"
#include "rl/reward/listed_answers.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

/// What a response may say to be right: the ground truth, or each member where it is a list in the
/// data. kInvalidArgument: a list without members, or with one that is no text, number or boolean.
Result<std::vector<std::string>> right_answers(const ScoreRequest& request, const Rule& rule) {
  const bool has_targets = rule.name() == "search_qa";  // reads lists itself
  const nlohmann::ordered_json truth =
      text_as_json(request.ground_truth, request.ground_truth_is_json && !has_targets);
  if (!truth.is_array()) return std::vector{request.ground_truth};
  Result<std::vector<std::string>> answers = listed_answers(rule.name(), truth);
  if (answers.ok() && rule.name() == "exact")
    answers->push_back(request.ground_truth);  // the list itself
  return answers;
}

/// The verdict by the answer for which the response scores most, the first of several.
Result<RuleVerdict> judge_by_any(const Rule& rule, const ScoreRequest& request) {
  const Result<std::vector<std::string>> answers = right_answers(request, rule);
  if (!answers.ok()) return answers.status();
  std::optional<RuleVerdict> best;
  for (const std::string& answer : *answers) {
    Result<RuleVerdict> judged = rule.judge(request.response, answer);
    if (!judged.ok()) return judged;
    if (!best || judged->score > best->score) best = std::move(*judged);
  }
  return std::move(*best);
}

}  // namespace

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
    Result<RuleVerdict> judged = judge_by_any(**rule, request);
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
  const Result<std::vector<std::string>> answers = right_answers(row, **rule);
  if (!answers.ok()) return answers.status();
  for (const std::string& answer : *answers) {
    if (const Status usable = (*rule)->check(answer); !usable.ok()) return usable;
  }
  return {};
}

}  // namespace rl
