#include "rl/reward/rule.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "rl/data/json_text.h"
#include "rl/reward/math_answer.h"
#include "rl/reward/number_text.h"
#include "rl/reward/search_answer.h"
#include "rl/template/python_string.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

/// A fraction may have been rounded, an integer was not: only a tolerance that is set holds for two
/// integers.
bool same_number(const WrittenNumber& a, const WrittenNumber& b, std::optional<double> tolerance) {
  constexpr double kFractionTolerance = 1e-9;
  if (a == b) return true;
  if (!tolerance && a.is_integer() && b.is_integer()) return false;
  const double x = a.value(), y = b.value();
  return std::isfinite(x) && std::isfinite(y) &&
         std::abs(x - y) <=
             tolerance.value_or(kFractionTolerance) * std::max({1.0, std::abs(x), std::abs(y)});
}

/// 1 or 0, and what was compared.
RuleVerdict verdict(bool right, std::optional<std::string> answer, std::string_view truth) {
  return {right ? 1.0 : 0.0, {std::move(answer), std::string(truth)}};
}

Result<RuleVerdict> number_rule(const std::string& rule, std::string_view ground_truth,
                                const std::string& found, std::optional<double> tolerance) {
  const std::optional<WrittenNumber> truth = number_of_truth(ground_truth);
  if (!truth)
    return invalid_argument("reward rule '" + rule + "': the ground truth '" +
                            excerpt(ground_truth, 80) + "' is not a number");
  const std::optional<WrittenNumber> value = WrittenNumber::parse(found);
  return verdict(value && same_number(*value, *truth, tolerance),
                 found.empty() ? std::nullopt : std::optional(found), truth->text());
}

RuleVerdict letters_rule(std::string_view response, std::string_view ground_truth) {
  const std::vector<std::string_view> given = split_characters(trim(response)),
                                      wanted = split_characters(trim(ground_truth));
  const std::size_t longer = std::max(given.size(), wanted.size());
  std::size_t agree = 0;
  for (std::size_t i = 0; i < std::min(given.size(), wanted.size()); ++i)
    agree += given[i] == wanted[i];
  RuleVerdict judged = verdict(true, std::string(trim(response)), trim(ground_truth));
  if (longer > 0) judged.score = static_cast<double>(agree) / static_cast<double>(longer);
  return judged;
}

bool has_thinking_form(std::string_view response) {
  constexpr std::string_view kOpen = "<think>", kClose = "</think>";
  const std::string_view text = trim(response);
  if (!text.starts_with(kOpen)) return false;
  const std::size_t close = text.find(kClose);
  if (close == std::string_view::npos || trim(text.substr(close + kClose.size())).empty())
    return false;
  return text.find(kOpen, 1) == std::string_view::npos &&
         text.find(kClose, close + 1) == std::string_view::npos;
}

/// verl's strict form: the number behind the last "####".
std::string number_after_mark(std::string_view response) {
  const std::size_t mark = response.rfind("####");
  return mark == std::string_view::npos ? std::string() : leading_number(response.substr(mark + 4));
}

/// Whether a mathematical answer is the ground truth, which may be a solution that ends with its
/// answer boxed.
RuleVerdict same_math(const std::optional<std::string>& answer, std::string_view ground_truth) {
  const std::string truth = last_boxed(ground_truth).value_or(std::string(ground_truth));
  return verdict(answer && equivalent(*answer, truth),
                 answer ? std::optional(normal_form(*answer)) : std::nullopt, normal_form(truth));
}

/// The last `count` characters.
std::string_view last_characters(std::string_view text, std::size_t count) {
  std::size_t begin = text.size();
  for (; begin > 0 && count > 0; --count) begin -= last_character_size(text.substr(0, begin));
  return text.substr(begin);
}

RuleVerdict math_dapo_rule(std::string_view response, std::string_view ground_truth) {
  constexpr std::size_t kTail = 300;  // verl looks no further back
  response = last_characters(response, kTail);
  std::string lower(response);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::optional<std::string> answer;
  for (std::size_t at = lower.rfind("answer"); at != lower.npos && !answer;
       at = at == 0 ? lower.npos : lower.rfind("answer", at - 1)) {
    const std::string_view rest = trim(response.substr(at + 6));
    if (!rest.starts_with(":")) continue;
    const std::string_view line = trim(rest.substr(1));
    answer = std::string(line.substr(0, line.find('\n')));
    answer = last_boxed(*answer).value_or(*answer);
  }
  RuleVerdict judged = same_math(answer, ground_truth);
  if (judged.score == 0.0) judged.score = -1.0;
  return judged;
}

RuleVerdict geo3k_rule(std::string_view response, std::string_view ground_truth) {
  const std::size_t open = response.find("<think>"), close = response.rfind("</think>");
  const bool formatted = trim(response).starts_with("<think>") && close != response.npos &&
                         open < close && last_boxed(response.substr(close)).has_value();
  RuleVerdict judged = same_math(last_boxed(response), ground_truth);
  judged.score = 0.9 * judged.score + 0.1 * (formatted ? 1.0 : 0.0);
  return judged;
}

Result<RuleVerdict> search_qa_rule(std::string_view response, std::string_view ground_truth) {
  const std::optional<std::string_view> tagged = tagged_answer(response);
  const std::optional<std::string> answer =
      tagged ? std::optional(plain_words(*tagged)) : std::nullopt;
  const Result<std::vector<std::string>> targets = targets_of(ground_truth);
  if (!targets.ok()) return targets.status();
  std::string all;
  for (const std::string& target : *targets) {
    const std::string words = plain_words(target);
    if (answer == words) return verdict(true, answer, words);
    all += (all.empty() ? "" : " | ") + words;
  }
  return verdict(false, answer, all);
}

Result<RuleVerdict> regex_rule(const UserPattern& pattern, std::string_view response,
                               std::string_view ground_truth) {
  const auto found = pattern.find_last(response);
  if (!found.ok()) return found.status();
  const bool right =
      found->has_value() && (!pattern.has_group() || trim(**found) == trim(ground_truth));
  return verdict(right, *found, trim(ground_truth));
}

}  // namespace

const std::vector<std::string>& reward_rules() {
  static const std::vector<std::string> rules = {"exact", "contains",  "number", "gsm8k",
                                                 "math",  "math_dapo", "geo3k",  "search_qa",
                                                 "regex", "letters",   "format"};
  return rules;
}

std::string list_reward_rules() {
  std::string names;
  for (const std::string& rule : reward_rules()) names += (names.empty() ? "" : ", ") + rule;
  return names;
}

Result<Rule> Rule::create(const std::string& name, const ordered_json& options) {
  const auto& rules = reward_rules();
  if (std::find(rules.begin(), rules.end(), name) == rules.end()) {
    return invalid_argument("there is no rule '" + name + "'; there is " + list_reward_rules());
  }
  Rule rule;
  rule.name_ = name;
  const std::string at = "reward rule '" + name + "': ";
  if (!options.is_null() && !options.is_object())
    return invalid_argument(at + "its options must be a dictionary");
  for (const auto& [key, value] : options.items()) {
    if (key == "tolerance" && name == "number") {
      if (!value.is_number() || !(value.get<double>() >= 0))
        return invalid_argument(at + "tolerance must be a number from 0, got " + value.dump());
      rule.tolerance_ = value.get<double>();
    } else if (key == "method" && name == "gsm8k") {
      if (value != "strict" && value != "flexible")
        return invalid_argument(at + "method must be strict or flexible, got " + value.dump());
      rule.flexible_ = value == "flexible";
    } else if (key == "pattern" && (name == "regex" || name == "format")) {
      if (!value.is_string())
        return invalid_argument(at + "pattern must be a string, got " + value.dump());
      const std::string pattern = value.get<std::string>();
      Result<UserPattern> compiled =
          UserPattern::compile(name == "format" ? "\\A(?:" + pattern + ")\\z" : pattern);
      if (!compiled.ok()) return compiled.status().with_context("reward rule '" + name + "'");
      rule.pattern_ = std::move(*compiled);
    } else {
      return invalid_argument(at + "it has no option '" + key + "'");
    }
  }
  if (name == "regex" && !rule.pattern_)
    return invalid_argument(at + "it needs a pattern: set reward.rule_kwargs.pattern");
  return rule;
}

Result<RuleVerdict> Rule::judge(std::string_view response, std::string_view ground_truth) const {
  const std::string_view given = trim(response), wanted = trim(ground_truth);
  if (name_ == "exact") return verdict(given == wanted, std::string(given), wanted);
  if (name_ == "contains")
    return verdict(response.find(wanted) != std::string_view::npos, std::string(given), wanted);
  if (name_ == "number") return number_rule(name_, ground_truth, last_number(response), tolerance_);
  if (name_ == "gsm8k")
    return number_rule(name_, ground_truth,
                       flexible_ ? last_number(response) : number_after_mark(response), tolerance_);
  if (name_ == "math") return same_math(last_boxed(response), ground_truth);
  if (name_ == "math_dapo") return math_dapo_rule(response, ground_truth);
  if (name_ == "geo3k") return geo3k_rule(response, ground_truth);
  if (name_ == "search_qa") return search_qa_rule(response, ground_truth);
  if (name_ == "regex") return regex_rule(*pattern_, response, ground_truth);
  if (name_ == "letters") return letters_rule(response, ground_truth);
  if (!pattern_) return verdict(has_thinking_form(response), std::string(given), {});
  const auto matched = pattern_->find_last(given);
  if (!matched.ok()) return matched.status();
  return verdict(matched->has_value(), std::string(given), {});
}

Result<double> Rule::score(std::string_view response, std::string_view ground_truth) const {
  const Result<RuleVerdict> judged = judge(response, ground_truth);
  if (!judged.ok()) return judged.status();
  return judged->score;
}

Status Rule::check(std::string_view ground_truth) const {
  const bool compares = name_ != "format" && !(name_ == "regex" && !pattern_->has_group());
  if (ground_truth.empty() && compares) {
    return invalid_argument(
        "reward rule '" + name_ +
        "': the row has no ground truth (key reward_model.ground_truth, or answer)");
  }
  return score("", ground_truth).status();
}

Result<double> rule_reward(const std::string& rule, std::string_view response,
                           std::string_view ground_truth) {
  const Result<Rule> made = Rule::create(rule);
  if (!made.ok()) return made.status();
  return made->score(response, ground_truth);
}

}  // namespace rl
