#include "rl/config/judge.h"

#include <algorithm>
#include <cmath>

#include "rl/config/custom_choices.h"
#include "rl/config/number_range.h"
#include "rl/config/override.h"

namespace rl {
namespace {

using nlohmann::ordered_json;

bool is_integral(const ordered_json& value) {
  if (value.is_number_integer()) return true;
  if (!value.is_number_float()) return false;
  const double number = value.get<double>();
  return std::isfinite(number) && std::floor(number) == number && std::abs(number) < 9e15;
}

bool equal_values(const ordered_json& a, const ordered_json& b) {
  if (a.is_number() && b.is_number()) return a.get<double>() == b.get<double>();
  return a == b;
}

/// Whether the value is among the '|'-separated texts.
bool is_allowed(const ordered_json& value, std::string_view allowed) {
  std::size_t start = 0;
  while (start <= allowed.size()) {
    const std::size_t end = std::min(allowed.find('|', start), allowed.size());
    const auto option = parse_override_value(allowed.substr(start, end - start));
    if (option.ok() && equal_values(value, *option)) return true;
    start = end + 1;
  }
  return false;
}

/// "a, b or c" from "a|b|c".
std::string list_allowed(std::string_view allowed) {
  std::string out;
  std::size_t start = 0;
  while (start <= allowed.size()) {
    const std::size_t end = std::min(allowed.find('|', start), allowed.size());
    if (!out.empty()) out += end == allowed.size() ? " or " : ", ";
    out += allowed.substr(start, end - start);
    start = end + 1;
  }
  return out;
}

/// "a|b|c" of a key, with what the program has added.
std::string all_allowed(const KeyInfo& info) {
  std::string allowed(info.allowed);
  for (const std::string& choice : added_choices(info.key)) allowed += "|" + choice;
  return allowed;
}

Judgement refusal(std::string message, std::string_view note) {
  if (!note.empty()) message += ": " + std::string(note);
  return {Judgement::Verdict::kRefused, std::move(message)};
}

}  // namespace

bool is_empty_text(const ordered_json& value) {
  return value.is_string() && value.get_ref<const std::string&>().empty();
}

bool is_empty_value(const ordered_json& value) {
  return value.is_null() || (value.is_structured() && value.empty()) || is_empty_text(value);
}

std::string show_value(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string describe_value(const ordered_json& value) {
  switch (value.type()) {
    case ordered_json::value_t::string: return "the string '" + value.get<std::string>() + "'";
    case ordered_json::value_t::null: return "null";
    case ordered_json::value_t::boolean: return value.get<bool>() ? "true" : "false";
    case ordered_json::value_t::array: return "a list";
    case ordered_json::value_t::object: return "a dictionary";
    default:
      return "the number " + (value.is_number_float() && !std::isfinite(value.get<double>())
                                  ? std::to_string(value.get<double>())
                                  : value.dump());  // JSON has no word for them
  }
}

std::string_view describe_kind(KeyKind kind) {
  switch (kind) {
    case KeyKind::kAny: return "anything";
    case KeyKind::kInt: return "an integer";
    case KeyKind::kIntOrNull: return "an integer or null";
    case KeyKind::kIntOrAuto: return "an integer or auto";
    case KeyKind::kIntOrFalse: return "an integer, or false for never";
    case KeyKind::kIntOrEpoch: return "an integer or after_each_epoch";
    case KeyKind::kFloat: return "a number";
    case KeyKind::kFloatOrNull: return "a number or null";
    case KeyKind::kBool: return "true or false";
    case KeyKind::kString: return "a string";
    case KeyKind::kStringOrNull: return "a string or null";
    case KeyKind::kStrings: return "a string or a list of strings";
    case KeyKind::kFloats: return "a list of numbers";
    case KeyKind::kMap: return "a dictionary";
  }
  return "anything";
}

bool matches_kind(const ordered_json& value, KeyKind kind) {
  switch (kind) {
    case KeyKind::kAny: return true;
    case KeyKind::kInt: return is_integral(value);
    case KeyKind::kIntOrNull: return value.is_null() || is_integral(value);
    case KeyKind::kIntOrAuto: return is_integral(value) || value == "auto";
    case KeyKind::kIntOrFalse: return is_integral(value) || value == false;
    case KeyKind::kIntOrEpoch: return is_integral(value) || value == kEachEpoch;
    case KeyKind::kFloat: return value.is_number();
    case KeyKind::kFloatOrNull: return value.is_null() || value.is_number();
    case KeyKind::kBool: return value.is_boolean();
    case KeyKind::kString: return value.is_string();
    case KeyKind::kStringOrNull: return value.is_null() || value.is_string();
    case KeyKind::kStrings:
      if (value.is_null() || value.is_string()) return true;
      if (!value.is_array()) return false;
      for (const ordered_json& item : value) {
        if (!item.is_string()) return false;
      }
      return true;
    case KeyKind::kFloats:
      if (!value.is_array()) return false;
      for (const ordered_json& item : value) {
        if (!item.is_number()) return false;
      }
      return true;
    case KeyKind::kMap: return value.is_null() || value.is_object();
  }
  return false;
}

// NaN or an infinity, anywhere in it: nothing can be computed with one, and JSON, in which
// configurations travel, has no word for it.
bool has_no_number(const ordered_json& value) {
  if (value.is_number_float()) return !std::isfinite(value.get<double>());
  return value.is_structured() && std::any_of(value.begin(), value.end(), has_no_number);
}

Judgement judge_key(const KeyInfo& info, std::string_view key, const ordered_json& value,
                    const ordered_json& default_value) {
  using Verdict = Judgement::Verdict;
  const std::string name(key);
  const bool below_map = info.is_above(key);
  if (info.support == KeySupport::kSupported) {
    if (equal_values(value, default_value)) return {};  // null where null is the default, say
    if (has_no_number(value))
      return {Verdict::kInvalid, name + ": expected a finite number, got " + describe_value(value)};
    if (!below_map && !matches_kind(value, info.kind)) {
      const std::string got = is_empty_text(value)
                                  ? "nothing after '=': a variable of the script may not be set"
                                  : describe_value(value);
      return {Verdict::kInvalid,
              name + ": expected " + std::string(describe_kind(info.kind)) + ", got " + got};
    }
    if (below_map || info.allowed.empty() || value.is_null()) return {};
    const ordered_json items = value.is_array() ? value : ordered_json::array({value});
    const std::string allowed = all_allowed(info);
    if (const auto range = NumberRange::parse(allowed)) {
      const bool within = std::all_of(items.begin(), items.end(), [&](const ordered_json& item) {
        return !item.is_number() || range->contains(item.get<double>());
      });
      return within ? Judgement{}
                    : Judgement{Verdict::kInvalid,
                                name + ": must be " + range->describe() + ", got " + value.dump()};
    }
    for (const ordered_json& item : items) {
      if (is_allowed(item, allowed)) continue;
      std::string message =
          name + ": expected " + list_allowed(allowed) + ", got " + describe_value(item);
      if (info.note.empty())
        return {Verdict::kInvalid, std::move(message)};  // there is no such choice anywhere
      return refusal(std::move(message), info.note);
    }
    return {};
  }
  const bool harmless = equal_values(value, default_value) || is_empty_value(value);
  if (info.support == KeySupport::kNoEffect) {
    if (!harmless && !below_map && !matches_kind(value, info.kind)) {
      return {Verdict::kInvalid, name + ": expected " + std::string(describe_kind(info.kind)) +
                                     ", got " + describe_value(value)};
    }
    return is_empty_value(value) ? Judgement{}
                                 : Judgement{Verdict::kNoEffect, std::string(info.note)};
  }
  if (harmless || (!info.allowed.empty() && is_allowed(value, info.allowed))) return {};
  return refusal(name + ": " + describe_value(value) + " is refused", info.note);
}

}  // namespace rl
