#include "rl/tokenizer/aligned_encoder.h"

#include <algorithm>

#include "rl/tokenizer/bytes.h"
#include "rl/tokenizer/unicode_text.h"

namespace rl {

using runtime::Status;

namespace {

// White space at an end of a token as its vocabulary spells it: byte-level vocabularies have their
// own character for it.
bool is_blank(char32_t c) { return c == byte_to_character(' ') || is_white_space(c); }

// In characters, as Hugging Face counts.
void trim(std::string_view token, bool add_prefix_space, bool first, TokenOffsets& offsets) {
  std::uint32_t leading = 0;
  for (std::size_t at = 0; at < token.size() && is_blank(next_code_point(token, at));) ++leading;
  std::uint32_t trailing = 0;
  for (std::size_t end = token.size(); end > 0 && is_blank(previous_code_point(token, end));)
    ++trailing;
  if (leading > 0) {
    if (leading == 1 && add_prefix_space && (first || offsets.begin == 0))
      leading = 0;  // that one was not in the text
    offsets.begin = std::min(offsets.begin + leading, offsets.end);
  }
  if (trailing > 0 && offsets.end >= trailing)
    offsets.end = std::max(offsets.end - trailing, offsets.begin);
}

TokenOffsets range_of(std::span<const Piece> origins) {
  return origins.empty() ? TokenOffsets{} : TokenOffsets{origins.front().begin, origins.back().end};
}

}  // namespace

std::string_view shown_token(const AddedTokens& added, const TokenModel& model, std::int32_t id) {
  if (const AddedToken* token = added.find(id)) return token->shown;
  return model.vocabulary().token(id);
}

Status AlignedEncoder::encode(std::string_view text) {
  scratch_.segments.clear();
  added_tokens_.split_original(text, scratch_.segments);
  for (const Segment& segment : scratch_.segments) {
    const auto begin = static_cast<std::uint32_t>(segment.text.data() - text.data());
    if (segment.id >= 0) {
      add_matched(segment.id, {begin, static_cast<std::uint32_t>(begin + segment.text.size())},
                  segment.text);
      continue;
    }
    if (Status status = encode_text(segment.text, begin); !status.ok()) return status;
  }
  return {};
}

void AlignedEncoder::add_matched(std::int32_t id, TokenOffsets at, std::string_view text) {
  matched_.emplace_back(ids.size(), text);
  ids.push_back(id);
  offsets.push_back(at);
}

// Text between added tokens: normalized, and searched for the added tokens that stand in normalized
// text.
Status AlignedEncoder::encode_text(std::string_view text, std::uint32_t begin) {
  AlignedText aligned = align(text, begin);
  if (normalizer_ != nullptr) {
    Status status = normalizer_->apply_aligned(aligned, scratch_.regex);
    if (!status.ok()) return status;
  }
  scratch_.inner_segments.clear();
  added_tokens_.split_normalized(aligned.text, scratch_.inner_segments);
  for (const Segment& segment : scratch_.inner_segments) {
    const auto at = static_cast<std::size_t>(segment.text.data() - aligned.text.data());
    const auto origins = std::span<const Piece>(aligned.origins).subspan(at, segment.text.size());
    if (segment.id >= 0) {
      add_matched(segment.id, range_of(origins), segment.text);
      continue;
    }
    Status status = encode_segment(segment.text, origins, begin == 0 && at == 0);
    if (!status.ok()) return status;
  }
  return {};
}

Status AlignedEncoder::encode_segment(std::string_view text, std::span<const Piece> origins,
                                      bool at_start) {
  PieceList& pieces = scratch_.pieces;
  pieces.reset(text, at_start);
  pieces.aligned = true;
  pieces.origins.assign(origins.begin(), origins.end());
  if (pre_tokenizer_ != nullptr) {
    Status status = pre_tokenizer_->apply(pieces, scratch_.regex);
    if (!status.ok()) return status;
  }
  for (const Piece& piece : pieces.pieces) encode_piece(piece);
  return {};
}

void AlignedEncoder::encode_piece(const Piece& piece) {
  found_.clear();
  ranges_.clear();
  model_.encode_ranges(scratch_.pieces.view(piece), *scratch_.model, found_, ranges_);
  const auto origins =
      std::span<const Piece>(scratch_.pieces.origins).subspan(piece.begin, piece.end - piece.begin);
  for (std::size_t i = 0; i < found_.size(); ++i) {
    const std::size_t end = std::min<std::size_t>(ranges_[i].end, origins.size());
    const std::size_t begin = std::min<std::size_t>(ranges_[i].begin, end);
    ids.push_back(found_[i]);
    offsets.push_back(range_of(origins.subspan(begin, end - begin)));
  }
}

void AlignedEncoder::trim_offsets(bool add_prefix_space) {
  auto matched = matched_.begin();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool added = matched != matched_.end() && matched->first == i;
    trim(added ? std::string_view((matched++)->second) : shown_token(added_tokens_, model_, ids[i]),
         add_prefix_space, i == 0, offsets[i]);
  }
}

}  // namespace rl
