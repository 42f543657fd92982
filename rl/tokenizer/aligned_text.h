// AlignedText: text on its way through normalizers, which remembers what of the original each part
// of it came from. The rules are those of Hugging Face's tokenizers, odd corners included, since
// offsets are compared with its.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rl {

/// A half-open range of bytes.
struct Piece {
  std::uint32_t begin;
  std::uint32_t end;
  bool operator==(const Piece&) const = default;
};

/// Valid UTF-8; the bytes of one character have the same origin.
struct AlignedText {
  std::string text;
  std::vector<Piece> origins;  // by byte of `text`: a range of the original text
  std::uint32_t begin =
      0;  // where the whole begins in the original: what comes before all of it is from there

  Piece start() const { return {begin, begin}; }
};

/// The characters of `original`, each its own origin; the first byte is at `begin` of the whole
/// original.
AlignedText align(std::string_view original, std::uint32_t begin);

/// Builds what is to become of an AlignedText, then takes its place.
class AlignedRewriter {
 public:
  explicit AlignedRewriter(AlignedText& old) : old_(old) { new_.begin = old.begin; }

  /// New text whose origin is that of the old text's byte `at`; nothing, when the old text has no
  /// such byte.
  void add(std::string_view text, std::size_t at);
  void add(std::string_view text, Piece origin);

  /// The old text's bytes [begin, end) as they are.
  void keep(std::size_t begin, std::size_t end);

  void finish();

 private:
  AlignedText& old_;
  AlignedText new_;
};

/// A character of the new text and how it came about. A `change` of 0 replaces the next character
/// of the old text, and -n replaces that and n more. With 1 the character comes in addition.
struct CharacterChange {
  char32_t character;
  int change;
};

/// Makes `text` what the changes say. A character that replaces others has the origin of the first
/// of them, an additional one that of what is before it.
void apply_changes(std::span<const CharacterChange> changes, AlignedText& text);

}  // namespace rl
