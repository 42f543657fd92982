#include "rl/data/reward.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

namespace rl {
namespace {

using runtime::invalid_argument;
using runtime::Result;

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// The number written at `start` (at a sign, digit or point), as digits without commas; `end` is behind it. Empty when there is none.
std::string number_at(std::string_view text, std::size_t start, std::size_t& end) {
  std::size_t i = start;
  std::string out;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) {
    if (text[i] == '-') out = "-";
    ++i;
  }
  if (i < text.size() && text[i] == '$') ++i;
  const std::size_t digits_from = out.size();
  while (i < text.size()) {
    const bool groups = text[i] == ',' && out.size() > digits_from && i + 3 < text.size() && is_digit(text[i + 1]) &&
                        is_digit(text[i + 2]) && is_digit(text[i + 3]) && (i + 4 >= text.size() || !is_digit(text[i + 4]));
    if (is_digit(text[i])) {
      out += text[i];
    } else if (!groups) {
      break;
    }
    ++i;
  }
  if (i + 1 < text.size() && text[i] == '.' && is_digit(text[i + 1])) {
    out += out.size() == digits_from ? "0." : ".";
    for (++i; i < text.size() && is_digit(text[i]); ++i) out += text[i];
  }
  end = i;
  return out.size() == digits_from ? std::string() : out;
}

std::optional<double> to_number(std::string_view digits) {
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// A ground truth is one number and nothing else but currency, percent and blanks.
std::optional<double> number_of_truth(std::string_view text) {
  text = trim(text);
  if (const std::size_t mark = text.rfind("####"); mark != std::string_view::npos) text = trim(text.substr(mark + 4));
  if (text.starts_with("$")) text.remove_prefix(1);
  std::size_t end = 0;
  const std::string digits = number_at(text, 0, end);
  std::string_view rest = trim(text.substr(end));
  if (rest == "%" || rest == ".") rest = {};
  if (!rest.empty()) return std::nullopt;
  return to_number(digits);
}

bool same_number(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max({1.0, std::abs(a), std::abs(b)});
}

Result<double> number_rule(std::string_view rule, std::string_view response, std::string_view ground_truth, const std::string& found) {
  const std::optional<double> truth = number_of_truth(ground_truth);
  if (!truth) {
    return invalid_argument("reward rule '" + std::string(rule) + "': the ground truth '" + std::string(ground_truth.substr(0, 80)) +
                            "' is not a number");
  }
  const std::optional<double> value = to_number(found);
  return value && same_number(*value, *truth) ? 1.0 : 0.0;
}

double letters_rule(std::string_view response, std::string_view ground_truth) {
  const std::string_view given = trim(response), wanted = trim(ground_truth);
  const std::size_t longer = std::max(given.size(), wanted.size());
  if (longer == 0) return 1.0;
  std::size_t agree = 0;
  for (std::size_t i = 0; i < std::min(given.size(), wanted.size()); ++i) agree += given[i] == wanted[i];
  return static_cast<double>(agree) / static_cast<double>(longer);
}

double format_rule(std::string_view response) {
  constexpr std::string_view kOpen = "<think>", kClose = "</think>";
  const std::string_view text = trim(response);
  if (!text.starts_with(kOpen)) return 0.0;
  const std::size_t close = text.find(kClose);
  if (close == std::string_view::npos || trim(text.substr(close + kClose.size())).empty()) return 0.0;
  const bool once = text.find(kOpen, 1) == std::string_view::npos && text.find(kClose, close + 1) == std::string_view::npos;
  return once ? 1.0 : 0.0;
}

/// verl's strict form: the number behind the last "####".
std::string number_after_mark(std::string_view response) {
  const std::size_t mark = response.rfind("####");
  if (mark == std::string_view::npos) return {};
  std::string_view rest = trim(response.substr(mark + 4));
  if (rest.starts_with("$")) rest.remove_prefix(1);
  std::size_t end = 0;
  return number_at(rest, 0, end);
}

std::string list_rules() {
  std::string names;
  for (const std::string& rule : reward_rules()) names += (names.empty() ? "" : ", ") + rule;
  return names;
}

}  // namespace

const std::vector<std::string>& reward_rules() {
  static const std::vector<std::string> rules = {"exact", "contains", "number", "gsm8k", "letters", "format"};
  return rules;
}

std::string last_number(std::string_view text) {
  std::string last;
  for (std::size_t i = 0; i < text.size();) {
    const bool signed_number = text[i] == '-' && i + 1 < text.size() && (is_digit(text[i + 1]) || text[i + 1] == '$' || text[i + 1] == '.');
    // In "12-5" and "a-5" the dash joins; only a free-standing one is a sign.
    const bool joins = signed_number && i > 0 && (is_digit(text[i - 1]) || std::isalpha(static_cast<unsigned char>(text[i - 1])));
    if (!is_digit(text[i]) && text[i] != '.' && (!signed_number || joins)) {
      ++i;
      continue;
    }
    std::size_t end = i;
    std::string found = number_at(text, i, end);
    if (!found.empty()) last = std::move(found);
    i = std::max(end, i + 1);
  }
  return last;
}

Result<double> rule_reward(std::string_view rule, std::string_view response, std::string_view ground_truth) {
  if (rule == "exact") return trim(response) == trim(ground_truth) ? 1.0 : 0.0;
  if (rule == "contains") return response.find(trim(ground_truth)) != std::string_view::npos ? 1.0 : 0.0;
  if (rule == "number") return number_rule(rule, response, ground_truth, last_number(response));
  if (rule == "gsm8k") return number_rule(rule, response, ground_truth, number_after_mark(response));
  if (rule == "letters") return letters_rule(response, ground_truth);
  if (rule == "format") return format_rule(response);
  return invalid_argument("reward.rule: there is no rule '" + std::string(rule) + "'; there is " + list_rules());
}

std::string rule_for_data_source(std::string_view data_source) {
  if (data_source == "toy") return "letters";
  if (data_source == "openai/gsm8k" || data_source == "gsm8k") return "gsm8k";
  if (data_source == "arithmetic") return "number";
  return "";
}

Result<RuleReward> RuleReward::from_config(const Config& config) {
  const auto rule = config.find_string("reward.rule");
  if (!rule.ok()) return rule.status();
  if (!rule->has_value()) return RuleReward("");
  const auto& rules = reward_rules();
  if (std::find(rules.begin(), rules.end(), **rule) == rules.end()) {
    return invalid_argument("reward.rule: there is no rule '" + **rule + "' (" + config.origin("reward.rule") + "); there is " +
                            list_rules());
  }
  return RuleReward(**rule);
}

Result<std::string> RuleReward::rule_of(std::string_view data_source) const {
  std::string rule = rule_.empty() ? rule_for_data_source(data_source) : rule_;
  if (!rule.empty()) return rule;
  return invalid_argument("nothing says how to score data source '" + std::string(data_source) + "': set reward.rule to one of " +
                          list_rules());
}

Result<double> RuleReward::compute(std::string_view data_source, std::string_view response, std::string_view ground_truth) const {
  const Result<std::string> rule = rule_of(data_source);
  if (!rule.ok()) return rule.status();
  return rule_reward(*rule, response, ground_truth);
}

runtime::Status RuleReward::check(std::string_view data_source, std::string_view ground_truth) const {
  const Result<std::string> rule = rule_of(data_source);
  if (!rule.ok()) return rule.status();
  if (ground_truth.empty() && *rule != "format") {
    return invalid_argument("reward rule '" + *rule + "': the row has no ground truth (key reward_model.ground_truth, or answer)");
  }
  return rule_reward(*rule, "", ground_truth).status();
}

}  // namespace rl
