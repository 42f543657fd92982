// Any text as a tokenizer.json; what loads must encode and decode without a crash, and decode to
// UTF-8.
#include "rl/tokenizer/tokenizer.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "rl/tokenizer/unicode_text.h"
#include "runtime/core/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto tokenizer =
      rl::Tokenizer::from_json({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!tokenizer.ok()) {
    CHECK(!tokenizer.status().message().empty());
    return 0;
  }
  const std::string text =
      "Hello  w\u00f6rld's 1234 <s>[MASK]\n\u4f60\u597d\u2581x \U0001f600e\u0301 ";
  const auto ids = tokenizer->encode(text, true);
  if (!ids.ok()) return 0;
  // With offsets the ids are the same, and each offset lies in the text, between characters.
  rl::EncodeOptions options;
  options.offsets = rl::OffsetUnit::kBytes;
  const auto encoding = tokenizer->encode_with(text, options);
  CHECK(encoding.ok());
  CHECK(encoding->ids == *ids);
  for (const rl::TokenOffsets& one : encoding->offsets) {
    CHECK(one.begin <= one.end && one.end <= text.size());
    CHECK(!rl::invalid_utf8_at(text.substr(one.begin, one.end - one.begin)).has_value());
  }
  CHECK(!rl::invalid_utf8_at(tokenizer->decode(*ids, false)).has_value());
  rl::TokenStream stream(*tokenizer, true);
  for (std::int32_t id : *ids) CHECK(!rl::invalid_utf8_at(stream.push(id)).has_value());
  (void)stream.finish();
  return 0;
}
