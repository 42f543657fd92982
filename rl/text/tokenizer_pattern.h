// What Split, Replace and their kin look for: {"String": "x"} or {"Regex": "x"} in a tokenizer.json.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "rl/text/tokenizer_regex.h"
#include "runtime/core/result.h"
#include "runtime/core/status.h"

namespace rl {

class Pattern {
 public:
  /// Reads the "pattern" member of a component; an older form, a plain string, is a literal.
  static runtime::Result<Pattern> from_json(const nlohmann::json& component);

  static runtime::Result<Pattern> regex(std::string_view regex);
  static Pattern literal(std::string text) { return Pattern(std::move(text)); }

  /// Calls `match(begin, end)` for each match, left to right, none overlapping. Empty matches are reported once per place.
  template <class Match>
  runtime::Status each(std::string_view text, RegexScratch& scratch, Match match) const {
    for (std::size_t from = 0; from <= text.size();) {
      bool failed = false;
      auto range = find(text, from, scratch, failed);
      if (failed) return gave_up();
      if (!range) break;
      match(range->first, range->second);
      from = range->second > range->first ? range->second : step_over(text, range->second);
    }
    return {};
  }

  /// `text` with every match replaced.
  runtime::Result<std::string> replace(std::string_view text, std::string_view replacement, RegexScratch& scratch) const;

 private:
  explicit Pattern(std::variant<std::string, Regex> matcher) : matcher_(std::move(matcher)) {}
  std::optional<std::pair<std::size_t, std::size_t>> find(std::string_view text, std::size_t from, RegexScratch& scratch,
                                                          bool& failed) const;
  static runtime::Status gave_up();
  static std::size_t step_over(std::string_view text, std::size_t at);

  std::variant<std::string, Regex> matcher_;
};

}  // namespace rl
