// Look-ups in maps, and sets kept by something.
#pragma once

namespace runtime::table_lookup {

/// Null: there is none.
template <class Map, class Key>
auto* lookup(const Map& map, const Key& key) {
  auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

/// The set of that key, or an empty one.
template <class Map, class Key>
const auto& set_of(const Map& sets, const Key& key) {
  static const typename Map::mapped_type kNone;
  auto found = sets.find(key);
  return found == sets.end() ? kNone : found->second;
}

/// Removes a value from the set of that key. A set that gets empty is removed, too.
template <class Map, class Key, class Value>
void remove_from(Map& sets, const Key& key, const Value& value) {
  auto found = sets.find(key);
  if (found == sets.end()) return;
  found->second.erase(value);
  if (found->second.empty()) sets.erase(found);
}

}  // namespace runtime::table_lookup
