// Rule rewards: pure functions from a response and the ground truth to a score. Torch-free,
// thread-safe.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rl/reward/compared.h"
#include "rl/reward/user_pattern.h"
#include "runtime/core/result.h"

namespace rl {

/// Every rule there is, in the order to list them to users:
///   exact     1 when the trimmed response equals the ground truth
///   contains  1 when the ground truth occurs in the response
///   number    1 when the last number in the response equals the ground truth as a number, within
///   `tolerance` (relative above 1; not set, 1e-9 for fractions, and two integers are compared
///   exactly) gsm8k     1 when the number after the last "####"
///   equals it (verl's strict form); with `method: flexible`, the last number wherever it stands
///   math      1 when the last \boxed{} of the response says the same as the ground truth
///   (math_answer.h) math_dapo 1 when what follows the last "Answer:" in the last 300 characters
///   does, else -1: verl's math_dapo geo3k     0.9 times math plus 0.1 for <think>...</think>
///   before a \boxed{}: verl's geo3k search_qa 1 when the last <answer>...</answer> equals one of
///   the ground truth's targets but for case, articles and punctuation: verl's search_r1 regex 1
///   when `pattern` matches; with a group in it, when what it captures last equals the ground truth
///   letters   the share of positions that agree, over the longer of the two texts: smooth, for the
///   toy tasks format    1 when the response is one <think>...</think> block followed by an answer,
///   or matches `pattern` from end to end
const std::vector<std::string>& reward_rules();

struct RuleVerdict {
  double score = 0.0;
  Compared compared;
};

/// A rule with its options. A value.
class Rule {
 public:
  /// `options` is null or a dictionary of what the list above names. kInvalidArgument: no such rule
  /// (the message lists them), an option that the rule doesn't have or of a wrong type, a malformed
  /// pattern.
  static runtime::Result<Rule> create(const std::string& name,
                                      const nlohmann::ordered_json& options = nullptr);

  const std::string& name() const { return name_; }

  /// kInvalidArgument: a ground truth that the rule cannot use ("number" with "abc").
  runtime::Result<RuleVerdict> judge(std::string_view response,
                                     std::string_view ground_truth) const;

  /// The score of judge().
  runtime::Result<double> score(std::string_view response, std::string_view ground_truth) const;

  /// What score() will say of every response to such a row, and kInvalidArgument when there is no
  /// ground truth to compare with.
  runtime::Status check(std::string_view ground_truth) const;

 private:
  std::string name_;
  std::optional<double> tolerance_;  // that the options set
  bool flexible_ = false;
  std::optional<UserPattern> pattern_;
};

/// Rule::create(rule) and its score, in one.
runtime::Result<double> rule_reward(const std::string& rule, std::string_view response,
                                    std::string_view ground_truth);

/// "exact, contains, ...", for messages.
std::string list_reward_rules();

/// Data sources whose responses are programs, which a sandbox runs: those that verl knows.
std::span<const std::string_view> code_data_sources();

/// The rule that a data source implies, as verl's default_compute_score has it ("openai/gsm8k" ->
/// gsm8k), and those of our data sets ("toy" -> letters). kInvalidArgument: it is unknown, or
/// its responses are programs. Both say what to set.
runtime::Result<std::string> rule_for_data_source(std::string_view data_source);

}  // namespace rl
