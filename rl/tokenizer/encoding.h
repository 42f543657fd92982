// Encoding: a text's ids with offsets and masks, and the truncation and padding of texts to a
// batch. The numbers are those of Hugging Face's tokenizers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace rl {

enum class Side : std::uint8_t { kLeft, kRight };

/// What offsets count.
enum class OffsetUnit : std::uint8_t { kNone, kBytes, kCharacters };

/// The half-open range of the original text that a token stands for. Special tokens that were added
/// stand for nothing: (0, 0). Tokens that share a character, bytes of an emoji say, each have all
/// of it.
struct TokenOffsets {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool operator==(const TokenOffsets&) const = default;
};

struct EncodeOptions {
  bool add_special_tokens = true;
  OffsetUnit offsets = OffsetUnit::kNone;  // finding them takes several times as long
  std::size_t tokens_max =
      0;  // with the special tokens that are added, which are never cut; 0: as many as there are
  Side truncation_side = Side::kRight;  // where tokens are cut off
};

struct Padding {
  enum class Target : std::uint8_t { kNone, kLongest, kFixed };
  Target target = Target::kNone;
  std::size_t length = 0;       // of kFixed; longer texts stay as they are
  std::size_t multiple_of = 0;  // the target is rounded up to a multiple of this; 0: not
  Side side = Side::kRight;
};

/// All members have one entry per token; offsets none unless asked for.
struct Encoding {
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> attention_mask;  // 0 at padding
  std::vector<std::uint8_t> special_mask;    // 1 at special tokens that were added, and at padding
  std::vector<TokenOffsets> offsets;
};

/// Fills up to what `padding` asks for; the offsets too `with_offsets`.
void pad_encodings(std::span<Encoding> encodings, const Padding& padding, std::int32_t pad_id,
                   bool with_offsets);

/// Byte offsets to offsets in characters of the same valid text. Offsets lie between characters.
void offsets_to_characters(std::string_view text, std::span<TokenOffsets> offsets);

/// Offsets in characters back to byte offsets.
void offsets_to_bytes(std::string_view text, std::span<TokenOffsets> offsets);

}  // namespace rl
