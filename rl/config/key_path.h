// Dotted keys as places in a tree.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace rl {

/// Finds or makes the place of a dotted key. nullptr when a part of the path is a plain value.
inline nlohmann::ordered_json* make_place(nlohmann::ordered_json& tree, std::string_view key) {
  nlohmann::ordered_json* at = &tree;
  std::size_t start = 0;
  while (true) {
    const std::size_t dot = key.find('.', start);
    if (at->is_null()) *at = nlohmann::ordered_json::object();
    if (!at->is_object()) return nullptr;
    at = &(*at)[std::string(key.substr(start, dot - start))];
    if (dot == std::string_view::npos) return at;
    start = dot + 1;
  }
}

/// The place of a dotted key; nullptr where there is none.
inline const nlohmann::ordered_json* find_place(const nlohmann::ordered_json& tree,
                                                std::string_view key) {
  const nlohmann::ordered_json* at = &tree;
  std::size_t start = 0;
  while (true) {
    const std::size_t dot = key.find('.', start);
    if (!at->is_object()) return nullptr;
    const auto member = at->find(std::string(key.substr(start, dot - start)));
    if (member == at->end()) return nullptr;
    at = &*member;
    if (dot == std::string_view::npos) return at;
    start = dot + 1;
  }
}

}  // namespace rl
