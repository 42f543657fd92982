// Any bytes as a SentencePiece model; what loads must encode and decode without a crash, and decode
// to UTF-8.
#include "rl/tokenizer/tokenizer_files.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "rl/tokenizer/tokenizer.h"
#include "rl/tokenizer/unicode_text.h"
#include "runtime/core/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto pipeline = rl::tokenizer_pipeline_from_sentencepiece(
      {reinterpret_cast<const char*>(data), size}, "fuzz", {});
  if (!pipeline.ok()) {
    CHECK(!pipeline.status().message().empty());
    return 0;
  }
  const rl::Tokenizer tokenizer(std::shared_ptr<const rl::TokenizerPipeline>(std::move(*pipeline)));
  const std::string text =
      "Hello  w\u00f6rld's 1234 <s>[x]\n\u4f60\u597d\u2581ab a \U0001f600e\u0301 \u00a0\ufb01 ";
  const auto ids = tokenizer.encode(text, true);
  CHECK(ids.ok());
  rl::EncodeOptions options;
  options.offsets = rl::OffsetUnit::kBytes;
  const auto encoding = tokenizer.encode_with(text, options);
  CHECK(encoding.ok());
  CHECK(encoding->ids == *ids);
  for (const rl::TokenOffsets& one : encoding->offsets)
    CHECK(one.begin <= one.end && one.end <= text.size());
  CHECK(!rl::invalid_utf8_at(tokenizer.decode(*ids, false)).has_value());
  rl::TokenStream stream(tokenizer, true);
  for (std::int32_t id : *ids) CHECK(!rl::invalid_utf8_at(stream.push(id)).has_value());
  (void)stream.finish();
  return 0;
}
