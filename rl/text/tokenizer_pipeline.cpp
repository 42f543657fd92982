#include "rl/text/tokenizer_pipeline.h"

#include <algorithm>
#include <utility>

#include "rl/text/tokenizer_text.h"

namespace rl {

using runtime::Result;
using runtime::Status;

Result<std::vector<std::int32_t>> TokenizerPipeline::encode(std::string_view text, bool add_special_tokens) const {
  if (text.size() > kTextBytesMax) {
    return runtime::invalid_argument("the text has " + std::to_string(text.size()) + " bytes, over the limit of " +
                                     std::to_string(kTextBytesMax) + "; encode it in parts");
  }
  if (auto at = invalid_utf8_at(text)) return runtime::invalid_argument("the text is not UTF-8 at byte " + std::to_string(*at));
  std::vector<std::int32_t> ids;
  if (add_special_tokens) ids = post_processor.prefix;
  auto scratch = take_scratch();
  scratch->segments.clear();
  added_tokens.split_original(text, scratch->segments);
  Status status;
  for (const Segment& segment : scratch->segments) {
    if (segment.id >= 0) {
      ids.push_back(segment.id);
      continue;
    }
    status = encode_text(segment.text, segment.text.data() == text.data(), *scratch, ids);
    if (!status.ok()) break;
  }
  give_back(std::move(scratch));
  if (!status.ok()) return status;
  if (add_special_tokens) ids.insert(ids.end(), post_processor.suffix.begin(), post_processor.suffix.end());
  return ids;
}

// Text between added tokens: normalized, searched for the added tokens that stand in normalized text, split, encoded.
Status TokenizerPipeline::encode_text(std::string_view text, bool at_start, Scratch& scratch,
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
    for (const Piece& piece : scratch.pieces.pieces) model->encode(scratch.pieces.view(piece), *scratch.model, ids);
  }
  return {};
}

std::string TokenizerPipeline::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
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
  if (const AddedToken* added = added_tokens.find(id)) return added->content;
  return model->vocabulary().token(id);
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

std::unique_ptr<TokenizerPipeline::Scratch> TokenizerPipeline::take_scratch() const {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto scratch = std::move(idle_.back());
      idle_.pop_back();
      return scratch;
    }
  }
  auto scratch = std::make_unique<Scratch>();
  scratch->model = model->make_scratch();
  return scratch;
}

void TokenizerPipeline::give_back(std::unique_ptr<Scratch> scratch) const {
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(scratch));
}

}  // namespace rl
