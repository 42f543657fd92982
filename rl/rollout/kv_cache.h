// Keys and values of sequences in pages, as in PagedAttention (Kwon et al. 2023, arXiv:2309.06180).
// A sequence's memory is a table of fixed-size blocks, and sequences with a common beginning share
// blocks by reference count.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// What a model keeps of a token.
struct KvShape {
  std::int64_t layers = 0;
  std::int64_t width = 0;  // elements of the keys of a layer, and of its values
};

struct KvCacheOptions {
  std::int64_t bytes_max = std::int64_t{1} << 30;
  std::int64_t block_tokens = 16;  // a multiple of kernel::kAttentionChunk
};

/// The blocks of one model: each holds keys and values of `block_tokens` tokens for all layers.
/// On the CPU address space is reserved at once; memory is taken when a block is first written, and
/// low blocks are used first. On another device all of the memory is taken at once. One thread at a
/// time.
class KvCache {
 public:
  /// kResourceExhausted: not a single block fits, or the system refuses the address space or the
  /// device the memory. kInvalidArgument: block_tokens.
  static runtime::Result<std::unique_ptr<KvCache>> create(const KvShape& shape,
                                                          const KvCacheOptions& options,
                                                          at::Device device = at::kCPU);
  ~KvCache();
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  std::int64_t block_tokens() const { return block_tokens_; }
  std::int64_t blocks() const { return static_cast<std::int64_t>(references_.size()); }
  std::int64_t free_blocks() const { return static_cast<std::int64_t>(free_.size()); }
  std::int64_t block_bytes() const {
    return block_stride_ * static_cast<std::int64_t>(sizeof(float));
  }

  /// A block with one reference, or none when all are taken.
  std::optional<std::int32_t> allocate();
  void retain(std::int32_t block);
  /// Frees the block when its last reference goes.
  void release(std::int32_t block);
  bool shared(std::int32_t block) const { return references_[static_cast<std::size_t>(block)] > 1; }

  /// Marks a block that the prefix cache holds a reference to.
  void set_cached(std::int32_t block, bool cached);
  /// Blocks so marked to which there is no other reference.
  std::int64_t idle_cached_blocks() const { return idle_cached_; }

  /// A block's keys and values of all layers, block_stride() of them, to where they are kept
  /// meanwhile in the host's memory, and back.
  void save(std::int32_t block, float* to) const;
  void load(std::int32_t block, const float* from);

  /// Gives the memory behind the blocks back to the system, where none is taken. It comes again as
  /// they are written (on another device than the CPU: at the next use of rows()).
  void release_memory();

  /// Copies the first `tokens` tokens of all layers.
  void copy(std::int32_t from, std::int32_t to, std::int64_t tokens);

  /// All keys and values, [rows, token_stride()] on the cache's device. Those of token t in block b
  /// of a layer are row b * rows_per_block() + first_row + t.
  const at::Tensor& rows();
  std::int64_t rows_per_block() const { return block_stride_ / token_stride_; }
  std::int64_t first_row_of_keys(std::int64_t layer) const { return 2 * layer * block_tokens_; }
  std::int64_t first_row_of_values(std::int64_t layer) const {
    return (2 * layer + 1) * block_tokens_;
  }
  at::Device device() const { return device_; }

  /// On the CPU: where a layer's keys and values of block 0 begin; block b is b * block_stride()
  /// further, token t of it t * token_stride().
  float* keys(std::int64_t layer) { return arena_ + 2 * layer * layer_part_; }
  float* values(std::int64_t layer) { return arena_ + (2 * layer + 1) * layer_part_; }
  std::int64_t block_stride() const { return block_stride_; }
  std::int64_t token_stride() const { return token_stride_; }

 private:
  KvCache(const KvShape& shape, std::int64_t block_tokens, std::int64_t blocks, at::Device device,
          float* arena);

  std::int64_t layers_;
  std::int64_t block_tokens_;
  std::int64_t token_stride_;
  std::int64_t layer_part_;  // keys (or values) of one layer in one block
  std::int64_t block_stride_;
  at::Device device_;
  float* arena_;     // null on another device than the CPU
  at::Tensor rows_;  // the arena on the CPU, too
  std::vector<std::int32_t> references_;
  std::vector<std::int32_t> free_;  // a stack
  std::vector<bool> cached_;
  std::int64_t idle_cached_ = 0;
};

}  // namespace rl
