#include "rl/tokenizer/charsmap.h"

#include <cstring>

#include "rl/tokenizer/unicode_text.h"

namespace rl {

using runtime::Result;

namespace {

// The fields of one unit of a double array, as Darts-clone packs them.
bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
std::uint32_t leaf_value(std::uint32_t unit) { return unit & 0x7fffffffu; }
std::uint32_t label(std::uint32_t unit) { return unit & 0x800000ffu; }
std::size_t child_offset(std::uint32_t unit) {
  return static_cast<std::size_t>(unit >> 10) << ((unit & (1u << 9)) >> 6);
}

}  // namespace

Result<CharsMap> CharsMap::parse(std::string_view blob) {
  CharsMap map;
  if (blob.empty()) return map;
  std::uint32_t trie_bytes = 0;
  if (blob.size() < sizeof(trie_bytes)) return runtime::invalid_argument("is too short");
  std::memcpy(&trie_bytes, blob.data(), sizeof(trie_bytes));
  blob.remove_prefix(sizeof(trie_bytes));
  if (trie_bytes == 0 || trie_bytes % 4 != 0 || trie_bytes > blob.size()) {
    return runtime::invalid_argument("claims a trie of " + std::to_string(trie_bytes) +
                                     " bytes in " + std::to_string(blob.size()));
  }
  map.units_.resize(trie_bytes / 4);
  std::memcpy(map.units_.data(), blob.data(), trie_bytes);
  map.replacements_ = blob.substr(trie_bytes);
  if (auto at = invalid_utf8_at(map.replacements_))
    return runtime::invalid_argument("replacements are not UTF-8 at byte " + std::to_string(*at));
  map.replacements_ += '\0';  // whatever the last one ends with
  return map;
}

std::optional<CharsMap::Match> CharsMap::find(std::string_view text, bool first) const {
  if (units_.empty()) return std::nullopt;
  std::optional<Match> found;
  std::size_t node = child_offset(units_[0]);
  for (std::size_t length = 1; length <= text.size(); ++length) {
    const auto byte = static_cast<unsigned char>(text[length - 1]);
    node ^= byte;
    if (node >= units_.size() || label(units_[node]) != byte) break;
    const std::uint32_t unit = units_[node];
    node ^= child_offset(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size()) break;
    const std::size_t at = leaf_value(units_[node]);
    // A damaged table may point anywhere, into the middle of a character say; and may end a string
    // there in the text.
    const bool whole =
        at < replacements_.size() &&
        (static_cast<unsigned char>(replacements_[at]) & 0xc0) != 0x80 &&
        (length == text.size() || (static_cast<unsigned char>(text[length]) & 0xc0) != 0x80);
    if (!whole) continue;
    found = Match{length, std::string_view(replacements_.c_str() + at)};
    if (first) break;
  }
  return found;
}

}  // namespace rl
