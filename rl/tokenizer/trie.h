// ByteTrie: finds which of many strings begin at a place in a text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace rl {

/// Immutable set of byte strings with a value each. Nodes lie breadth first with the children of
/// one side by side, so a trie takes 12 bytes per node.
class ByteTrie {
 public:
  ByteTrie() = default;

  /// Keys may come in any order; empty keys are left out, of equal keys the last value counts.
  /// Values are not negative.
  explicit ByteTrie(std::vector<std::pair<std::string_view, std::int32_t>> keys);

  bool empty() const { return nodes_.size() <= 1; }

  /// Calls `found(length, value)` for every key that is a prefix of `text`, shortest first.
  template <class Found>
  void prefixes(std::string_view text, Found found) const {
    if (text.empty() || nodes_.empty()) return;
    std::uint32_t node = first_[static_cast<unsigned char>(text[0])];
    for (std::size_t length = 1; node != 0; ++length) {
      if (nodes_[node].value >= 0) found(length, nodes_[node].value);
      if (length == text.size()) return;
      node = child(node, static_cast<unsigned char>(text[length]));
    }
  }

  /// Whether any key begins with this byte.
  bool starts(char byte) const { return first_[static_cast<unsigned char>(byte)] != 0; }

 private:
  struct Node {
    std::uint32_t children = 0;  // index of the first child
    std::int32_t value = -1;     // -1: no key ends here
    std::uint16_t child_count = 0;
    unsigned char byte = 0;
  };

  std::uint32_t child(std::uint32_t node, unsigned char byte) const;  // 0: none

  std::vector<Node> nodes_;                 // 0 is the root
  std::array<std::uint32_t, 256> first_{};  // the root's children by byte
};

}  // namespace rl
