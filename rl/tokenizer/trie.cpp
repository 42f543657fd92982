#include "rl/tokenizer/trie.h"

#include <algorithm>

namespace rl {

ByteTrie::ByteTrie(std::vector<std::pair<std::string_view, std::int32_t>> keys) {
  std::erase_if(keys, [](const auto& key) { return key.first.empty(); });
  std::stable_sort(keys.begin(), keys.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  // A node waiting for its children: the keys [begin, end) share its `depth` first bytes.
  struct Open {
    std::uint32_t node;
    std::size_t begin;
    std::size_t end;
    std::size_t depth;
  };
  nodes_.emplace_back();
  std::vector<Open> queue = {{0, 0, keys.size(), 0}};
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const Open open = queue[next];
    std::size_t begin = open.begin;
    while (begin < open.end && keys[begin].first.size() == open.depth)
      nodes_[open.node].value = keys[begin++].second;
    nodes_[open.node].children = static_cast<std::uint32_t>(nodes_.size());
    while (begin < open.end) {
      const char byte = keys[begin].first[open.depth];
      std::size_t end = begin;
      while (end < open.end && keys[end].first[open.depth] == byte) ++end;
      const auto node = static_cast<std::uint32_t>(nodes_.size());
      nodes_.emplace_back().byte = static_cast<unsigned char>(byte);
      ++nodes_[open.node].child_count;
      if (open.depth == 0) first_[static_cast<unsigned char>(byte)] = node;
      queue.push_back({node, begin, end, open.depth + 1});
      begin = end;
    }
  }
}

std::uint32_t ByteTrie::child(std::uint32_t node, unsigned char byte) const {
  const Node& parent = nodes_[node];
  const auto* begin = nodes_.data() + parent.children;
  const auto* end = begin + parent.child_count;
  const auto* found =
      parent.child_count <= 8
          ? std::find_if(begin, end, [byte](const Node& child) { return child.byte == byte; })
          : std::lower_bound(begin, end, byte,
                             [](const Node& child, unsigned char b) { return child.byte < b; });
  return found != end && found->byte == byte ? static_cast<std::uint32_t>(found - nodes_.data())
                                             : 0;
}

}  // namespace rl
