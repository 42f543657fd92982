#include "placement/resource/label_selector.h"

#include <string_view>

namespace placement {

using runtime::Labels;
using runtime::Status;

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// The part between the brackets of "in(a, b)".
std::string_view list_of(std::string_view selector) {
  return selector.substr(3, selector.size() - 4);
}

bool is_list(std::string_view selector) { return selector.starts_with("in("); }

bool list_has(std::string_view list, std::string_view value) {
  while (true) {
    const std::size_t comma = list.find(',');
    if (trimmed(list.substr(0, comma)) == value) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

bool value_meets(const std::string* offered, std::string_view selector) {
  if (selector.starts_with('!')) return !value_meets(offered, selector.substr(1));
  if (!offered) return false;
  if (selector == "*") return true;
  return is_list(selector) ? list_has(list_of(selector), *offered) : selector == *offered;
}

bool label_meets(const Labels& offered, const std::pair<const std::string, std::string>& wanted) {
  auto found = offered.find(wanted.first);
  return value_meets(found == offered.end() ? nullptr : &found->second, wanted.second);
}

}  // namespace

Status check_selectors(const Labels& wanted) {
  for (const auto& [name, value] : wanted) {
    if (name.empty()) return runtime::invalid_argument("a label needs a name");
    std::string_view selector = value;
    if (selector.starts_with('!')) selector.remove_prefix(1);
    if (selector.starts_with('!'))
      return runtime::invalid_argument("label " + name + "=" + value + ": one '!' is enough");
    if (!is_list(selector)) continue;
    if (!selector.ends_with(')'))
      return runtime::invalid_argument("label " + name + "=" + value +
                                       ": expected a closing bracket at its end");
    if (trimmed(list_of(selector)).empty())
      return runtime::invalid_argument("label " + name + "=" + value + ": the list names no value");
  }
  return {};
}

bool meets(const Labels& offered, const Labels& wanted) {
  for (const auto& label : wanted) {
    if (!label_meets(offered, label)) return false;
  }
  return true;
}

Labels unmet(const Labels& offered, const Labels& wanted) {
  Labels missing;
  for (const auto& label : wanted) {
    if (!label_meets(offered, label)) missing.insert(label);
  }
  return missing;
}

std::string to_string(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) text += (text.empty() ? "" : ", ") + name + "=" + value;
  return text;
}

}  // namespace placement
