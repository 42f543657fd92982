// The patterns of Split, Replace and their kin: {"String": "x"} or {"Regex": "x"} in a
// tokenizer.json.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <nlohmann/json_fwd.hpp>

#include "rl/tokenizer/regex.h"
#include "rl/tokenizer/unicode_corrections.h"
#include "runtime/core/result.h"
#include "runtime/core/status.h"

namespace rl {

class Pattern {
 public:
  /// Reads the "pattern" member of a component; an older form, a plain string, is a literal.
  static runtime::Result<Pattern> from_json(const nlohmann::json& component);

  static runtime::Result<Pattern> regex(std::string_view regex);
  static Pattern literal(std::string text) { return Pattern(std::move(text)); }

  /// Calls `match(begin, end)` for each match, left to right, none overlapping. As in Hugging
  /// Face's tokenizers an empty match right behind the one before does not count, and an empty text
  /// has none.
  template <class Match>
  runtime::Status each(std::string_view text, RegexScratch& scratch, Match match) const {
    std::string stand_in;
    if (std::holds_alternative<Regex>(matcher_)) text = text_for_patterns(text, stand_in);
    std::size_t last_end = std::string_view::npos;
    for (std::size_t from = 0; from <= text.size() && !text.empty();) {
      bool failed = false;
      auto range = find(text, from, scratch, failed);
      if (failed) return gave_up();
      if (!range) break;
      const auto [begin, end] = *range;
      if (begin < end || begin != last_end) match(begin, end);
      from = begin < end ? end : step_over(text, end);
      last_end = end;
    }
    return {};
  }

  /// `text` with every match replaced.
  runtime::Result<std::string> replace(std::string_view text, std::string_view replacement,
                                       RegexScratch& scratch) const;

 private:
  explicit Pattern(std::variant<std::string, Regex> matcher) : matcher_(std::move(matcher)) {}
  std::optional<std::pair<std::size_t, std::size_t>> find(std::string_view text, std::size_t from,
                                                          RegexScratch& scratch,
                                                          bool& failed) const;
  static runtime::Status gave_up();
  static std::size_t step_over(std::string_view text, std::size_t at);

  std::variant<std::string, Regex> matcher_;
};

}  // namespace rl
