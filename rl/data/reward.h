// Rule rewards: pure functions from a response and the ground truth to a score. Torch-free, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rl/config/config.h"
#include "rl/data/dataset.h"
#include "runtime/core/result.h"

namespace rl {

/// Every rule there is, in the order to list them to users:
///   exact    1 when the trimmed response equals the ground truth
///   contains 1 when the ground truth occurs in the response
///   number   1 when the last number in the response equals the ground truth as a number
///   gsm8k    1 when the number after the last "####" equals it (verl's strict form)
///   letters  the share of positions that agree, over the longer of the two texts: smooth, for the toy tasks
///   format   1 when the response is one <think>...</think> block followed by an answer
const std::vector<std::string>& reward_rules();

/// The score, in [0, 1]. kInvalidArgument: no such rule (the message lists them), or a ground truth that the rule cannot use
/// ("number" with "abc").
runtime::Result<double> rule_reward(std::string_view rule, std::string_view response, std::string_view ground_truth);

/// The rule that a data source implies ("openai/gsm8k" -> gsm8k, "toy" -> letters); empty when none does.
std::string rule_for_data_source(std::string_view data_source);

/// Chooses the rule of a run: `reward.rule` for every row, or each row's by its data source.
class RuleReward {
 public:
  /// kInvalidArgument: `reward.rule` names no rule.
  static runtime::Result<RuleReward> from_config(const Config& config);
  explicit RuleReward(std::string rule) : rule_(std::move(rule)) {}

  /// kInvalidArgument as rule_reward, or when neither `reward.rule` nor the data source says how to score.
  runtime::Result<double> compute(std::string_view data_source, std::string_view response, std::string_view ground_truth) const;

  /// What compute() will say of every response to such a row, and kInvalidArgument when there is no ground truth to compare with.
  runtime::Status check(std::string_view data_source, std::string_view ground_truth) const;

 private:
  runtime::Result<std::string> rule_of(std::string_view data_source) const;

  std::string rule_;  // empty: by data source
};

/// The number that a text ends with: signs, decimals, thousands commas, a leading "$" and a trailing "." or "%" are understood.
/// Empty when there is none.
std::string last_number(std::string_view text);

}  // namespace rl
