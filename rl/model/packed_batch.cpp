#include "rl/model/packed_batch.h"

#include <string>

#include "runtime/core/check.h"

namespace rl {
namespace {

std::string at(std::string_view what, std::size_t index) {
  return std::string(what) + " " + std::to_string(index);
}

}  // namespace

void PackedBatch::append(std::span<const std::int32_t> sequence, std::int64_t first_target) {
  CHECK(first_target >= 1);
  const std::int64_t begin = tokens();
  ids.insert(ids.end(), sequence.begin(), sequence.end());
  cu_seqlens.push_back(tokens());
  for (std::int64_t i = begin + first_target; i < tokens(); ++i) targets.push_back(i);
}

void PackedBatch::append(std::span<const std::int32_t> sequence, std::int64_t first_target,
                         std::span<const std::uint8_t> mask) {
  CHECK(first_target >= 1);
  CHECK(static_cast<std::int64_t>(sequence.size()) ==
        first_target + static_cast<std::int64_t>(mask.size()));
  const std::int64_t begin = tokens();
  ids.insert(ids.end(), sequence.begin(), sequence.end());
  cu_seqlens.push_back(tokens());
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 0) targets.push_back(begin + first_target + static_cast<std::int64_t>(i));
  }
}

runtime::Status PackedBatch::validate(std::int64_t vocab_size, std::int64_t positions_max) const {
  using runtime::invalid_argument;
  if (cu_seqlens.empty() || cu_seqlens.front() != 0 || cu_seqlens.back() != tokens()) {
    return invalid_argument("packed batch: sequence boundaries must begin at 0 and end at " +
                            std::to_string(tokens()));
  }
  if (!rope_lengths.empty() && static_cast<std::int64_t>(rope_lengths.size()) != sequences())
    return invalid_argument(
        "packed batch: a length for angles is needed for each sequence, or none");
  for (std::size_t b = 0; b + 1 < cu_seqlens.size(); ++b) {
    const std::int64_t length = cu_seqlens[b + 1] - cu_seqlens[b];
    if (length <= 0) return invalid_argument("packed batch: " + at("sequence", b) + " is empty");
    if (length > positions_max) {
      return invalid_argument("packed batch: " + at("sequence", b) + " has " +
                              std::to_string(length) + " tokens, the model takes " +
                              std::to_string(positions_max));
    }
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size) {
      return invalid_argument("packed batch: " + at("token", i) + " is " + std::to_string(ids[i]) +
                              ", the vocabulary has " + std::to_string(vocab_size));
    }
  }
  std::size_t sequence = 0;
  std::int64_t previous = -1;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::int64_t target = targets[i];
    if (target <= previous || target >= tokens()) {
      return invalid_argument("packed batch: " + at("target", i) +
                              " is out of order or out of range");
    }
    previous = target;
    while (cu_seqlens[sequence + 1] <= target) ++sequence;
    if (cu_seqlens[sequence] == target) {
      return invalid_argument("packed batch: " + at("target", i) + " is the first token of " +
                              at("sequence", sequence) + ", which nothing predicts");
    }
  }
  return {};
}

}  // namespace rl
