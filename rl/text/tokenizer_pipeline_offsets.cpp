// Encoding with offsets: the slower way through the pipeline, which keeps track of where every byte
// came from.
#include <algorithm>
#include <utility>

#include "rl/text/tokenizer_bytes.h"
#include "rl/text/tokenizer_pipeline.h"
#include "rl/text/tokenizer_text.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

// White space at an end of a token as its vocabulary spells it: byte-level vocabularies have a
// character of their own for it.
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

}  // namespace

Status TokenizerPipeline::encode_text_aligned(std::string_view text, std::uint32_t begin,
                                              Scratch& scratch, AlignedTokens& tokens) const {
  std::vector<std::int32_t>& ids = tokens.ids;
  AlignedText aligned = align(text, begin);
  if (normalizer != nullptr) {
    Status status = normalizer->apply_aligned(aligned, scratch.regex);
    if (!status.ok()) return status;
  }
  const auto range = [](std::span<const Piece> origins) {
    return origins.empty() ? TokenOffsets{}
                           : TokenOffsets{origins.front().begin, origins.back().end};
  };
  scratch.inner_segments.clear();
  added_tokens.split_normalized(aligned.text, scratch.inner_segments);
  std::vector<Piece> ranges;
  for (const Segment& segment : scratch.inner_segments) {
    const auto at = static_cast<std::size_t>(segment.text.data() - aligned.text.data());
    const auto origins = std::span<const Piece>(aligned.origins).subspan(at, segment.text.size());
    if (segment.id >= 0) {
      tokens.add_matched(segment.id, range(origins), segment.text);
      continue;
    }
    PieceList& pieces = scratch.pieces;
    pieces.reset(segment.text, begin == 0 && at == 0);
    pieces.aligned = true;
    pieces.origins.assign(origins.begin(), origins.end());
    if (pre_tokenizer != nullptr) {
      Status status = pre_tokenizer->apply(pieces, scratch.regex);
      if (!status.ok()) return status;
    }
    for (const Piece& piece : pieces.pieces) {
      const std::size_t first = ids.size();
      ranges.clear();
      model->encode_ranges(pieces.view(piece), *scratch.model, ids, ranges);
      const auto of_piece =
          std::span<const Piece>(pieces.origins).subspan(piece.begin, piece.end - piece.begin);
      const std::vector<std::int32_t> found(ids.begin() + static_cast<std::ptrdiff_t>(first),
                                            ids.end());
      ids.resize(first);
      for (std::size_t i = 0; i < found.size(); ++i) {
        const std::size_t end = std::min<std::size_t>(ranges[i].end, of_piece.size());
        ids.push_back(found[i]);
        tokens.offsets.push_back(
            range(of_piece.subspan(std::min<std::size_t>(ranges[i].begin, end),
                                   end - std::min<std::size_t>(ranges[i].begin, end))));
      }
    }
  }
  return {};
}

Status TokenizerPipeline::encode_aligned(std::string_view text, OffsetUnit unit,
                                         std::vector<std::int32_t>& ids,
                                         std::vector<TokenOffsets>& offsets) const {
  auto scratch = take_scratch();
  scratch->segments.clear();
  added_tokens.split_original(text, scratch->segments);
  AlignedTokens tokens{ids, offsets};
  Status status;
  for (const Segment& segment : scratch->segments) {
    const auto begin = static_cast<std::uint32_t>(segment.text.data() - text.data());
    if (segment.id >= 0) {
      tokens.add_matched(segment.id,
                         {begin, static_cast<std::uint32_t>(begin + segment.text.size())},
                         segment.text);
      continue;
    }
    status = encode_text_aligned(segment.text, begin, *scratch, tokens);
    if (!status.ok()) break;
  }
  give_back(std::move(scratch));
  if (!status.ok()) return status;
  if (unit == OffsetUnit::kBytes && !post_processor.trim_offsets) return {};
  offsets_to_characters(text, offsets);
  if (post_processor.trim_offsets) {
    auto matched = tokens.matched.begin();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const bool added = matched != tokens.matched.end() && matched->first == i;
      trim(added ? std::string_view((matched++)->second) : token(ids[i]),
           post_processor.add_prefix_space, i == 0, offsets[i]);
    }
  }
  if (unit == OffsetUnit::kBytes) offsets_to_bytes(text, offsets);
  return {};
}

}  // namespace rl
