#include "rl/tokenizer/encoding.h"

#include <algorithm>

#include "rl/tokenizer/unicode_text.h"

namespace rl {

namespace {

void pad_encoding(Encoding& encoding, std::size_t length, Side side, std::int32_t pad_id,
                  bool with_offsets) {
  if (encoding.ids.size() >= length) return;
  const std::size_t missing = length - encoding.ids.size();
  const auto fill = [&](auto& values, auto value) {
    values.insert(side == Side::kLeft ? values.begin() : values.end(), missing, value);
  };
  if (with_offsets) fill(encoding.offsets, TokenOffsets{});
  fill(encoding.ids, pad_id);
  fill(encoding.attention_mask, std::uint8_t{0});
  fill(encoding.special_mask, std::uint8_t{1});
}

}  // namespace

void pad_encodings(std::span<Encoding> encodings, const Padding& padding, std::int32_t pad_id,
                   bool with_offsets) {
  if (padding.target == Padding::Target::kNone) return;
  std::size_t length = padding.length;
  if (padding.target == Padding::Target::kLongest) {
    length = 0;
    for (const Encoding& encoding : encodings) length = std::max(length, encoding.ids.size());
  }
  if (padding.multiple_of > 0)
    length = (length + padding.multiple_of - 1) / padding.multiple_of * padding.multiple_of;
  for (Encoding& encoding : encodings)
    pad_encoding(encoding, length, padding.side, pad_id, with_offsets);
}

void offsets_to_characters(std::string_view text, std::span<TokenOffsets> offsets) {
  if (is_ascii(text)) return;
  std::vector<std::uint32_t> before(text.size() + 1);  // characters that begin before each byte
  std::uint32_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    before[at] = count;
    count += (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80 ? 1 : 0;
  }
  before[text.size()] = count;
  for (TokenOffsets& one : offsets) one = {before[one.begin], before[one.end]};
}

void offsets_to_bytes(std::string_view text, std::span<TokenOffsets> offsets) {
  if (is_ascii(text)) return;
  std::vector<std::uint32_t> starts;  // of each character
  for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at]))
    starts.push_back(static_cast<std::uint32_t>(at));
  starts.push_back(static_cast<std::uint32_t>(text.size()));
  for (TokenOffsets& one : offsets) one = {starts[one.begin], starts[one.end]};
}

}  // namespace rl
