#include "rl/tokenizer/pattern.h"

#include <nlohmann/json.hpp>

#include "rl/tokenizer/json_fields.h"
#include "rl/tokenizer/unicode_text.h"

namespace rl {

using runtime::Result;
using runtime::Status;

Result<Pattern> Pattern::from_json(const nlohmann::json& component) {
  const nlohmann::json* pattern = json_member(component, "pattern");
  if (pattern == nullptr) return runtime::invalid_argument("pattern is missing");
  if (pattern->is_string()) return literal(pattern->get<std::string>());
  if (json_member(*pattern, "Regex") != nullptr) {
    auto text = json_string(*pattern, "Regex");
    return text.ok() ? regex(*text) : text.status();
  }
  auto text = json_string(*pattern, "String");
  if (!text.ok())
    return runtime::invalid_argument("pattern is neither {\"String\": ...} nor {\"Regex\": ...}");
  return literal(std::string(*text));
}

Result<Pattern> Pattern::regex(std::string_view regex) {
  auto compiled = Regex::compile(regex);
  if (!compiled.ok()) return compiled.status();
  return Pattern(std::move(*compiled));
}

std::optional<std::pair<std::size_t, std::size_t>> Pattern::find(std::string_view text,
                                                                 std::size_t from,
                                                                 RegexScratch& scratch,
                                                                 bool& failed) const {
  if (const auto* regex = std::get_if<Regex>(&matcher_))
    return regex->find(text, from, scratch, failed);
  const std::string& wanted = std::get<std::string>(matcher_);
  failed = false;
  if (wanted.empty()) return std::nullopt;
  const std::size_t at = text.find(wanted, from);
  if (at == std::string_view::npos) return std::nullopt;
  return std::pair(at, at + wanted.size());
}

Result<std::string> Pattern::replace(std::string_view text, std::string_view replacement,
                                     RegexScratch& scratch) const {
  std::string out;
  std::size_t copied = 0;
  Status status = each(text, scratch, [&](std::size_t begin, std::size_t end) {
    out += text.substr(copied, begin - copied);
    out += replacement;
    copied = end;
  });
  if (!status.ok()) return status;
  out += text.substr(copied);
  return out;
}

Status Pattern::gave_up() {
  return runtime::resource_exhausted(
      "the tokenizer's pattern backtracks without end on this text; shorten its runs of one kind "
      "of character");
}

std::size_t Pattern::step_over(std::string_view text, std::size_t at) {
  return at < text.size() ? at + utf8_length(text[at]) : at + 1;
}

}  // namespace rl
