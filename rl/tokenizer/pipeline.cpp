#include "rl/tokenizer/pipeline.h"

#include <algorithm>
#include <utility>

#include "rl/tokenizer/aligned_encoder.h"
#include "rl/tokenizer/clean_up.h"
#include "rl/tokenizer/unicode_text.h"

namespace rl {

using runtime::Result;
using runtime::Status;

Status TokenizerPipeline::check_text(std::string_view text) const {
  if (text.size() > kTextBytesMax) {
    return runtime::invalid_argument("the text has " + std::to_string(text.size()) +
                                     " bytes, over the limit of " + std::to_string(kTextBytesMax) +
                                     "; encode it in parts");
  }
  if (auto at = invalid_utf8_at(text))
    return runtime::invalid_argument("the text is not UTF-8 at byte " + std::to_string(*at));
  return {};
}

Result<std::vector<std::int32_t>> TokenizerPipeline::encode(std::string_view text,
                                                            bool add_special_tokens) const {
  if (Status status = check_text(text); !status.ok()) return status;
  std::vector<std::int32_t> ids;
  if (add_special_tokens) ids = post_processor.prefix;
  if (Status status = encode_plain(text, ids); !status.ok()) return status;
  if (add_special_tokens)
    ids.insert(ids.end(), post_processor.suffix.begin(), post_processor.suffix.end());
  return ids;
}

Result<Encoding> TokenizerPipeline::encode_with(std::string_view text,
                                                const EncodeOptions& options) const {
  const std::span<const std::int32_t> prefix =
      options.add_special_tokens ? std::span<const std::int32_t>(post_processor.prefix)
                                 : std::span<const std::int32_t>();
  const std::span<const std::int32_t> suffix =
      options.add_special_tokens ? std::span<const std::int32_t>(post_processor.suffix)
                                 : std::span<const std::int32_t>();
  const std::size_t specials = prefix.size() + suffix.size();
  if (options.tokens_max > 0 && options.tokens_max < specials) {
    return runtime::invalid_argument("at most " + std::to_string(options.tokens_max) +
                                     " tokens leave no room for the " + std::to_string(specials) +
                                     " special tokens around every text");
  }
  if (Status status = check_text(text); !status.ok()) return status;
  const bool with_offsets = options.offsets != OffsetUnit::kNone;
  std::vector<std::int32_t> ids;
  std::vector<TokenOffsets> offsets;
  Status status =
      with_offsets ? encode_aligned(text, options.offsets, ids, offsets) : encode_plain(text, ids);
  if (!status.ok()) return status;
  const std::size_t kept =
      options.tokens_max > 0 ? std::min(ids.size(), options.tokens_max - specials) : ids.size();
  const auto first =
      static_cast<std::ptrdiff_t>(options.truncation_side == Side::kLeft ? ids.size() - kept : 0);
  const auto last = first + static_cast<std::ptrdiff_t>(kept);

  Encoding encoding;
  encoding.ids.assign(prefix.begin(), prefix.end());
  encoding.ids.insert(encoding.ids.end(), ids.begin() + first, ids.begin() + last);
  encoding.ids.insert(encoding.ids.end(), suffix.begin(), suffix.end());
  encoding.attention_mask.assign(encoding.ids.size(), 1);
  encoding.special_mask.assign(encoding.ids.size(), 0);
  std::fill_n(encoding.special_mask.begin(), prefix.size(), std::uint8_t{1});
  std::fill_n(encoding.special_mask.rbegin(), suffix.size(), std::uint8_t{1});
  if (with_offsets) {
    encoding.offsets.assign(prefix.size(), {});
    encoding.offsets.insert(encoding.offsets.end(), offsets.begin() + first,
                            offsets.begin() + last);
    encoding.offsets.resize(encoding.ids.size());
  }
  return encoding;
}

Status TokenizerPipeline::encode_plain(std::string_view text,
                                       std::vector<std::int32_t>& ids) const {
  ScratchPool::Borrowed borrowed = scratch_.take(*model);
  EncodeScratch& scratch = *borrowed;
  scratch.segments.clear();
  added_tokens.split_original(text, scratch.segments);
  for (const Segment& segment : scratch.segments) {
    if (segment.id >= 0) {
      ids.push_back(segment.id);
      continue;
    }
    Status status = encode_text(segment.text, segment.text.data() == text.data(), scratch, ids);
    if (!status.ok()) return status;
  }
  return {};
}

Status TokenizerPipeline::encode_aligned(std::string_view text, OffsetUnit unit,
                                         std::vector<std::int32_t>& ids,
                                         std::vector<TokenOffsets>& offsets) const {
  ScratchPool::Borrowed borrowed = scratch_.take(*model);
  AlignedEncoder encoder(added_tokens, normalizer.get(), pre_tokenizer.get(), *model, *borrowed);
  if (Status status = encoder.encode(text); !status.ok()) return status;
  if (unit == OffsetUnit::kCharacters || post_processor.trim_offsets) {
    offsets_to_characters(text, encoder.offsets);
    if (post_processor.trim_offsets) encoder.trim_offsets(post_processor.add_prefix_space);
    if (unit == OffsetUnit::kBytes) offsets_to_bytes(text, encoder.offsets);
  }
  ids = std::move(encoder.ids);
  offsets = std::move(encoder.offsets);
  return {};
}

// Text between added tokens: normalized, searched for the added tokens that stand in normalized
// text, split, encoded.
Status TokenizerPipeline::encode_text(std::string_view text, bool at_start, EncodeScratch& scratch,
                                      std::vector<std::int32_t>& ids) const {
  if (normalizer != nullptr) {
    scratch.normalized.assign(text);
    Status status = normalizer->apply(scratch.normalized, scratch.regex);
    if (!status.ok()) return status;
    text = scratch.normalized;
  }
  scratch.inner_segments.clear();
  added_tokens.split_normalized(text, scratch.inner_segments);
  for (const Segment& segment : scratch.inner_segments) {
    if (segment.id >= 0) {
      ids.push_back(segment.id);
      continue;
    }
    scratch.pieces.reset(segment.text, at_start && segment.text.data() == text.data());
    if (pre_tokenizer != nullptr) {
      Status status = pre_tokenizer->apply(scratch.pieces, scratch.regex);
      if (!status.ok()) return status;
    }
    for (const Piece& piece : scratch.pieces.pieces)
      model->encode(scratch.pieces.view(piece), *scratch.model, ids);
  }
  return {};
}

std::string TokenizerPipeline::decode(std::span<const std::int32_t> ids,
                                      bool skip_special_tokens) const {
  std::string text = decode_as_is(ids, skip_special_tokens);
  return cleans_up_spaces ? clean_up_spaces(std::move(text)) : text;
}

std::string TokenizerPipeline::decode_as_is(std::span<const std::int32_t> ids,
                                            bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (std::int32_t id : ids) {
    const std::string_view text = token(id);
    if (text.empty() || (skip_special_tokens && is_special(id))) continue;
    tokens.emplace_back(text);
  }
  if (decoder != nullptr) decoder->decode(tokens);
  std::string out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (decoder == nullptr && i > 0) out += ' ';
    out += tokens[i];
  }
  return out;
}

std::string_view TokenizerPipeline::token(std::int32_t id) const {
  return shown_token(added_tokens, *model, id);
}

std::optional<std::int32_t> TokenizerPipeline::find(std::string_view token) const {
  if (const AddedToken* added = added_tokens.find(token)) return added->id;
  return model->vocabulary().find(token);
}

bool TokenizerPipeline::is_special(std::int32_t id) const {
  const AddedToken* added = added_tokens.find(id);
  return added != nullptr && added->special;
}

std::int32_t TokenizerPipeline::size() const {
  std::int32_t size = model->vocabulary().size();
  for (const AddedToken& token : added_tokens.tokens()) size = std::max(size, token.id + 1);
  return size;
}

}  // namespace rl
