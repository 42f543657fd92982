#include "rl/config/nearest.h"

#include <algorithm>
#include <cstdlib>

#include "rl/config/keys.h"
#include "runtime/core/nearest.h"

namespace rl {
namespace {

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

std::string_view section_of(std::string_view key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : key.substr(0, dot);
}

/// Lower is nearer. A wrong section costs a little by how much of it differs, so that of equal last
/// parts the nearest section wins.
double distance(std::string_view key, std::string_view candidate) {
  const auto whole = static_cast<double>(runtime::edit_distance(key, candidate));
  const auto last =
      static_cast<double>(runtime::edit_distance(last_part(key), last_part(candidate)));
  const double section =
      key.find('.') == std::string_view::npos
          ? 0
          : static_cast<double>(runtime::edit_distance(section_of(key), section_of(candidate)));
  return std::min(whole, 1.0 + 1.5 * last + 0.02 * section);
}

}  // namespace

std::vector<std::string> nearest_keys(std::string_view key, std::size_t count,
                                      const KeyTable& keys) {
  constexpr std::size_t kKeyMax =
      200;  // a longer one is no misspelling, and the distance costs length times length
  if (key.size() > kKeyMax) return {};
  std::vector<std::pair<double, std::string>> ranked;
  const double limit = std::max(2.0, 0.34 * static_cast<double>(last_part(key).size())) + 1.0;
  auto consider = [&](std::string_view candidate) {
    const double d = distance(key, candidate);
    if (d <= limit) ranked.emplace_back(d, std::string(candidate));
  };
  for (const KeyInfo& row : keys.rows()) consider(row.key);
  for (const KeyAlias& alias : keys.aliases()) {
    if (!alias.old_name.ends_with('.')) consider(alias.old_name);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (auto& [d, name] : ranked) {
    // Far behind the best one, a name is noise.
    if (names.size() == count || d > ranked.front().first + 1) break;
    names.push_back(std::move(name));
  }
  return names;
}

std::string unknown_key_message(std::string_view key, const KeyTable& keys) {
  std::string message = "unknown key '" + std::string(key) + "'";
  const std::vector<std::string> names = nearest_keys(key, 3, keys);
  if (names.empty()) return message + ": write +" + std::string(key) + "=... to add a custom key";
  message += ": did you mean ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) message += i + 1 == names.size() ? " or " : ", ";
    message += "'" + names[i] + "'";
  }
  return message + "?";
}

}  // namespace rl
