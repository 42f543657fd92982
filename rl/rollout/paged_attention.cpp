#include "rl/rollout/paged_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <tuple>

#include "runtime/core/check.h"

namespace rl {
namespace {

// Keys of one group that are gathered at a time, and as many values.
constexpr std::int64_t kGatheredBytesMax = std::int64_t{256} << 20;

at::Tensor to_device(const std::vector<std::int64_t>& host, at::IntArrayRef shape,
                     at::Device device) {
  return at::from_blob(const_cast<std::int64_t*>(host.data()), shape,
                       at::TensorOptions().dtype(at::kLong))
      .to(device, at::kLong, /*non_blocking=*/false, /*copy=*/true);
}

std::int64_t queries_of(const StepSequence& sequence) {
  return static_cast<std::int64_t>(sequence.tokens.size());
}
std::int64_t keys_of(const StepSequence& sequence) {
  return sequence.first_position + queries_of(sequence);
}

// Equal for sequences that a group may hold: as many queries, and keys that differ by a factor of
// two at most.
std::tuple<std::int64_t, int> sequence_kind(const StepSequence& sequence) {
  return {queries_of(sequence), std::bit_width(static_cast<std::uint64_t>(keys_of(sequence)))};
}

}  // namespace

PagedAttention::PagedAttention(KvCache& cache, std::span<const StepSequence> sequences)
    : cache_(cache) {
  const std::int64_t size = cache.block_tokens();
  std::vector<std::int64_t> written, first_rows;
  for (const StepSequence& sequence : sequences) {
    CHECK(static_cast<std::int64_t>(sequence.blocks.size()) * size >= keys_of(sequence));
    first_rows.push_back(static_cast<std::int64_t>(written.size()));
    for (std::int64_t position = sequence.first_position; position < keys_of(sequence);
         ++position) {
      written.push_back(sequence.blocks[static_cast<std::size_t>(position / size)] *
                            cache.rows_per_block() +
                        position % size);
    }
  }
  written_ = to_device(written, {static_cast<std::int64_t>(written.size())}, cache.device());

  std::vector<std::size_t> order(sequences.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sequence_kind(sequences[a]) < sequence_kind(sequences[b]);
  });
  for (std::size_t begin = 0; begin < order.size();) {
    const auto kind = sequence_kind(sequences[order[begin]]);
    const std::int64_t bytes = (std::int64_t{1} << std::get<1>(kind)) * cache.token_stride() *
                               static_cast<std::int64_t>(sizeof(float));
    const auto members_max =
        static_cast<std::size_t>(std::max<std::int64_t>(1, kGatheredBytesMax / bytes));
    std::size_t end = begin;
    while (end < order.size() && end - begin < members_max &&
           sequence_kind(sequences[order[end]]) == kind)
      ++end;
    add_group(sequences, std::span(order).subspan(begin, end - begin), first_rows);
    begin = end;
  }
}

void PagedAttention::add_group(std::span<const StepSequence> sequences,
                               std::span<const std::size_t> members,
                               std::span<const std::int64_t> first_rows) {
  const std::int64_t size = cache_.block_tokens();
  Group group;
  group.sequences = static_cast<std::int64_t>(members.size());
  group.queries = queries_of(sequences[members.front()]);
  for (const std::size_t member : members)
    group.keys = std::max(group.keys, keys_of(sequences[member]));
  const std::int64_t blocks = (group.keys + size - 1) / size;
  std::vector<std::int64_t> table, rows, positions, ends;
  for (const std::size_t member : members) {
    const StepSequence& sequence = sequences[member];
    for (std::int64_t i = 0; i < blocks; ++i)
      table.push_back(sequence.blocks[i < static_cast<std::int64_t>(sequence.blocks.size())
                                          ? static_cast<std::size_t>(i)
                                          : 0]);
    for (std::int64_t i = 0; i < group.queries; ++i) rows.push_back(first_rows[member] + i);
    positions.push_back(sequence.first_position);
    ends.push_back(keys_of(sequence));
  }
  const at::Device device = cache_.device();
  const auto counting = at::TensorOptions().dtype(at::kLong).device(device);
  group.rows = to_device(rows, {static_cast<std::int64_t>(rows.size())}, device);
  group.first_positions = to_device(positions, {group.sequences, 1, 1}, device);
  const at::Tensor in_table =
      to_device(table, {group.sequences, blocks, 1}, device) * cache_.rows_per_block() +
      at::arange(size, counting);
  const at::Tensor slots = in_table.view({group.sequences, blocks * size}).narrow(1, 0, group.keys);
  const at::Tensor there =
      at::arange(group.keys, counting) < to_device(ends, {group.sequences, 1}, device);
  group.slots = at::where(there, slots, slots.narrow(1, 0, 1)).view({-1});
  groups_.push_back(std::move(group));
}

const at::Tensor& PagedAttention::mask(Group& group, std::int64_t window) {
  at::Tensor& mask = group.masks[window];
  if (mask.defined()) return mask;
  const auto counting = at::TensorOptions().dtype(at::kLong).device(cache_.device());
  const at::Tensor queries =
      group.first_positions +
      at::arange(group.queries, counting).unsqueeze(1);  // [sequences, queries, 1]
  const at::Tensor keys = at::arange(group.keys, counting);
  at::Tensor hidden = keys > queries;
  if (window > 0) hidden = hidden.logical_or(keys <= queries - window);
  mask = at::zeros(hidden.sizes(), counting.dtype(at::kFloat))
             .masked_fill_(hidden, -std::numeric_limits<float>::infinity())
             .unsqueeze(1);
  return mask;
}

at::Tensor PagedAttention::attend(Group& group, std::int64_t layer,
                                  const forward::AttentionShape& shape, const at::Tensor& q) {
  // Queries that share a key head are rows of one product, so that no key is there twice.
  const std::int64_t shared = shape.heads / shape.kv_heads;
  const at::Tensor queries =
      q.view({group.sequences, group.queries, shape.kv_heads, shared, shape.head_dim})
          .permute({0, 2, 3, 1, 4})
          .reshape({group.sequences, shape.kv_heads, shared * group.queries, shape.head_dim});
  const auto gathered = [&](std::int64_t first_row) {
    return cache_.rows()
        .index_select(0, group.slots + first_row)
        .view({group.sequences, group.keys, shape.kv_heads, shape.head_dim})
        .transpose(1, 2);
  };
  const at::Tensor keys = gathered(cache_.first_row_of_keys(layer)),
                   values = gathered(cache_.first_row_of_values(layer));
  const at::Tensor once = mask(group, shape.window);
  const at::Tensor hidden = group.queries == 1 ? once : once.repeat({1, 1, shared, 1});
  at::Tensor y;
  if (shape.softcap > 0.0F) {
    const at::Tensor scores = at::matmul(queries, keys.transpose(2, 3))
                                  .mul_(shape.scale / shape.softcap)
                                  .tanh_()
                                  .mul_(shape.softcap)
                                  .add_(hidden);
    y = at::matmul(at::softmax(scores, 3), values);
  } else {
    y = at::scaled_dot_product_attention(queries, keys, values, hidden, /*dropout_p=*/0.0,
                                         /*is_causal=*/false, shape.scale);
  }
  return y.view({group.sequences, shape.kv_heads, shared, group.queries, shape.head_dim})
      .permute({0, 3, 1, 2, 4})
      .reshape({group.sequences * group.queries, -1});
}

at::Tensor PagedAttention::attend(std::int64_t layer, const forward::AttentionShape& shape,
                                  const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  at::Tensor rows = cache_.rows();
  rows.index_copy_(0, written_ + cache_.first_row_of_keys(layer), k);
  rows.index_copy_(0, written_ + cache_.first_row_of_values(layer), v);
  at::Tensor y = at::empty(q.sizes(), q.options());
  for (Group& group : groups_)
    y.index_copy_(0, group.rows, attend(group, layer, shape, q.index_select(0, group.rows)));
  return y;
}

}  // namespace rl
