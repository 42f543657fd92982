// Lists that are cut over workers: one list a worker <-> one list of all.
#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>
#include <vector>

namespace rl {

template <class To, class From>
std::vector<To> join(const std::vector<std::vector<From>>& parts) {
  std::vector<To> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// Of nothing each part is nothing.
template <class T, class Part>
std::vector<std::vector<T>> cut_like(const std::vector<T>& all,
                                     const std::vector<std::vector<Part>>& parts) {
  if (all.empty()) return std::vector<std::vector<T>>(parts.size());
  std::vector<std::vector<T>> cut;
  auto begin = all.begin();
  for (const auto& part : parts) {
    const auto end = begin + static_cast<std::ptrdiff_t>(part.size());
    cut.emplace_back(begin, end);
    begin = end;
  }
  return cut;
}

template <class T, class Member>
auto select(const std::vector<T>& items, Member member) {
  std::vector<std::decay_t<decltype(std::invoke(member, items.front()))>> selected;
  for (const T& item : items) selected.push_back(std::invoke(member, item));
  return selected;
}

}  // namespace rl
