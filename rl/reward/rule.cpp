#include "rl/reward/rule.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "rl/reward/math_answer.h"
#include "rl/reward/number_text.h"
#include "runtime/core/json.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

bool same_number(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)});
}

Result<double> number_rule(const std::string& rule, std::string_view ground_truth,
                           const std::string& found, double tolerance) {
  const std::optional<double> truth = number_of_truth(ground_truth);
  if (!truth)
    return invalid_argument("reward rule '" + rule + "': the ground truth '" +
                            std::string(ground_truth.substr(0, 80)) + "' is not a number");
  const std::optional<double> value = to_number(found);
  return value && same_number(*value, *truth, tolerance) ? 1.0 : 0.0;
}

double letters_rule(std::string_view response, std::string_view ground_truth) {
  const std::string_view given = trim(response), wanted = trim(ground_truth);
  const std::size_t longer = std::max(given.size(), wanted.size());
  if (longer == 0) return 1.0;
  std::size_t agree = 0;
  for (std::size_t i = 0; i < std::min(given.size(), wanted.size()); ++i)
    agree += given[i] == wanted[i];
  return static_cast<double>(agree) / static_cast<double>(longer);
}

double format_rule(std::string_view response) {
  constexpr std::string_view kOpen = "<think>", kClose = "</think>";
  const std::string_view text = trim(response);
  if (!text.starts_with(kOpen)) return 0.0;
  const std::size_t close = text.find(kClose);
  if (close == std::string_view::npos || trim(text.substr(close + kClose.size())).empty())
    return 0.0;
  const bool once = text.find(kOpen, 1) == std::string_view::npos &&
                    text.find(kClose, close + 1) == std::string_view::npos;
  return once ? 1.0 : 0.0;
}

/// verl's strict form: the number behind the last "####".
std::string number_after_mark(std::string_view response) {
  const std::size_t mark = response.rfind("####");
  return mark == std::string_view::npos ? std::string() : leading_number(response.substr(mark + 4));
}

// A solution that ends with its answer boxed is as good as the answer.
std::string math_truth(std::string_view ground_truth) {
  return last_boxed(ground_truth).value_or(std::string(ground_truth));
}

double math_rule(std::string_view response, std::string_view ground_truth) {
  const std::optional<std::string> answer = last_boxed(response);
  return answer && equivalent(*answer, math_truth(ground_truth)) ? 1.0 : 0.0;
}

double math_dapo_rule(std::string_view response, std::string_view ground_truth) {
  constexpr std::size_t kTail = 300;  // characters of ASCII; verl looks no further back
  if (response.size() > kTail) response.remove_prefix(response.size() - kTail);
  std::string lower(response);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (std::size_t at = lower.rfind("answer"); at != lower.npos;
       at = at == 0 ? lower.npos : lower.rfind("answer", at - 1)) {
    const std::string_view rest = trim(response.substr(at + 6));
    if (!rest.starts_with(":")) continue;
    const std::string_view line = trim(rest.substr(1));
    const std::string answer(line.substr(0, line.find('\n')));
    return equivalent(last_boxed(answer).value_or(answer), math_truth(ground_truth)) ? 1.0 : -1.0;
  }
  return -1.0;
}

double geo3k_rule(std::string_view response, std::string_view ground_truth) {
  const std::size_t open = response.find("<think>"), close = response.rfind("</think>");
  const bool formatted = trim(response).starts_with("<think>") && close != response.npos &&
                         open < close && last_boxed(response.substr(close)).has_value();
  return 0.9 * math_rule(response, ground_truth) + 0.1 * (formatted ? 1.0 : 0.0);
}

/// SQuAD's normal form of answers: lower case, without punctuation and articles.
std::string plain_words(std::string_view text) {
  std::string cleaned;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::ispunct(byte)) continue;
    cleaned += static_cast<char>(std::tolower(byte));
  }
  std::string out, word;
  cleaned += ' ';
  for (const char c : cleaned) {
    if (!std::isspace(static_cast<unsigned char>(c))) {
      word += c;
      continue;
    }
    if (!word.empty() && word != "a" && word != "an" && word != "the")
      out += (out.empty() ? "" : " ") + word;
    word.clear();
  }
  return out;
}

/// {"target": ["a", "b"]}, {"target": "a"}, ["a"] or the text itself.
std::vector<std::string> targets_of(std::string_view ground_truth) {
  ordered_json tree = runtime::parse_json<ordered_json>(ground_truth);
  if (tree.is_object() && tree.contains("target")) tree = ordered_json(tree.at("target"));
  std::vector<std::string> targets;
  if (tree.is_array()) {
    for (const ordered_json& item : tree)
      targets.push_back(item.is_string() ? item.get<std::string>() : item.dump());
  } else {
    targets.push_back(tree.is_string() ? tree.get<std::string>() : std::string(ground_truth));
  }
  return targets;
}

double search_qa_rule(std::string_view response, std::string_view ground_truth) {
  constexpr std::string_view kOpen = "<answer>", kClose = "</answer>";
  const std::size_t close = response.rfind(kClose);
  const std::size_t open = close == response.npos ? close : response.rfind(kOpen, close);
  if (open == response.npos) return 0.0;
  const std::string answer =
      plain_words(response.substr(open + kOpen.size(), close - open - kOpen.size()));
  for (const std::string& target : targets_of(ground_truth)) {
    if (plain_words(target) == answer) return 1.0;
  }
  return 0.0;
}

Result<double> regex_rule(const Pattern& pattern, std::string_view response,
                          std::string_view ground_truth) {
  const auto found = pattern.find_last(response);
  if (!found.ok()) return found.status();
  if (!found->has_value()) return 0.0;
  return !pattern.has_group() || trim(**found) == trim(ground_truth) ? 1.0 : 0.0;
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
      Result<Pattern> compiled =
          Pattern::compile(name == "format" ? "\\A(?:" + pattern + ")\\z" : pattern);
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

Result<double> Rule::score(std::string_view response, std::string_view ground_truth) const {
  if (name_ == "exact") return trim(response) == trim(ground_truth) ? 1.0 : 0.0;
  if (name_ == "contains")
    return response.find(trim(ground_truth)) != std::string_view::npos ? 1.0 : 0.0;
  if (name_ == "number") return number_rule(name_, ground_truth, last_number(response), tolerance_);
  if (name_ == "gsm8k")
    return number_rule(name_, ground_truth,
                       flexible_ ? last_number(response) : number_after_mark(response), tolerance_);
  if (name_ == "math") return math_rule(response, ground_truth);
  if (name_ == "math_dapo") return math_dapo_rule(response, ground_truth);
  if (name_ == "geo3k") return geo3k_rule(response, ground_truth);
  if (name_ == "search_qa") return search_qa_rule(response, ground_truth);
  if (name_ == "regex") return regex_rule(*pattern_, response, ground_truth);
  if (name_ == "letters") return letters_rule(response, ground_truth);
  if (!pattern_) return format_rule(response);
  const auto matched = pattern_->find_last(trim(response));
  if (!matched.ok()) return matched.status();
  return matched->has_value() ? 1.0 : 0.0;
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
