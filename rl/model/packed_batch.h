// Sequences laid end to end, so that no padding is computed.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "runtime/core/status.h"

namespace rl {

/// B sequences of T tokens altogether, and the N tokens among them whose log-probability is asked
/// for. A value.
struct PackedBatch {
  std::vector<std::int32_t> ids;  // [T]
  std::vector<std::int64_t> cu_seqlens{
      0};  // [B + 1]: sequence b is ids[cu_seqlens[b] .. cu_seqlens[b + 1])
  std::vector<std::int64_t>
      targets;  // [N] indices into ids, growing; never the first token of its sequence
  bool share_beginnings = true;  // tokens that begin two neighbours alike are computed once:
                                 // nothing but time and memory depends on it
  std::vector<std::int64_t> rope_lengths =
      {};  // [B]: the length that a sequence's angles go by where it is more than its own (dynamic,
           // longrope); empty: their own

  /// Appends a sequence and asks for the log-probability of its tokens from `first_target` (at
  /// least 1: nothing precedes the first token) to its end. A prompt followed by a response passes
  /// the prompt's length.
  void append(std::span<const std::int32_t> sequence, std::int64_t first_target = 1);

  /// The same for those tokens from `first_target` on that have a 1 in `mask`, which has as many as
  /// there are such tokens.
  void append(std::span<const std::int32_t> sequence, std::int64_t first_target,
              std::span<const std::uint8_t> mask);

  auto fields() { return std::tie(ids, cu_seqlens, targets, share_beginnings, rope_lengths); }

  std::int64_t tokens() const { return static_cast<std::int64_t>(ids.size()); }
  std::int64_t sequences() const { return static_cast<std::int64_t>(cu_seqlens.size()) - 1; }

  /// kInvalidArgument: ids outside [0, vocab_size), boundaries that do not grow, or targets out of
  /// order or without a predecessor. Also `rope_lengths` of another number, or a sequence longer
  /// than `positions_max`.
  runtime::Status validate(std::int64_t vocab_size, std::int64_t positions_max) const;
};

}  // namespace rl
