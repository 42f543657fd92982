#include "rl/rollout/kv_cache.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>

#include "rl/kernel/attention.h"
#include "rl/model/guarded.h"
#include "runtime/core/check.h"

namespace rl {

runtime::Result<std::unique_ptr<KvCache>> KvCache::create(const KvShape& shape,
                                                          const KvCacheOptions& options,
                                                          at::Device device) {
  if (options.block_tokens <= 0 || options.block_tokens % kernel::kAttentionChunk != 0) {
    return runtime::invalid_argument("kv cache: block_tokens is " +
                                     std::to_string(options.block_tokens) + ", not a multiple of " +
                                     std::to_string(kernel::kAttentionChunk));
  }
  const std::int64_t block_bytes = shape.layers * 2 * options.block_tokens * shape.width *
                                   static_cast<std::int64_t>(sizeof(float));
  const std::int64_t blocks = std::min<std::int64_t>(options.bytes_max / block_bytes,
                                                     std::numeric_limits<std::int32_t>::max());
  if (blocks <= 0) {
    return runtime::resource_exhausted("kv cache: one block takes " + std::to_string(block_bytes) +
                                       " bytes, the limit is " + std::to_string(options.bytes_max));
  }
  if (!device.is_cpu()) {
    std::unique_ptr<KvCache> cache(
        new KvCache(shape, options.block_tokens, blocks, device, nullptr));
    const runtime::Status taken = guarded<void>(
        "kv cache of " + std::to_string(blocks * block_bytes) + " bytes", [&] { cache->rows(); });
    if (taken.code() == runtime::ErrorCode::kResourceExhausted)
      return runtime::resource_exhausted(taken.message() + "; lower the cache's bytes_max");
    if (!taken.ok()) return taken;
    return cache;
  }
  const auto bytes = static_cast<std::size_t>(blocks * block_bytes);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return runtime::resource_exhausted("kv cache: can't reserve " + std::to_string(bytes) +
                                       " bytes: " + std::strerror(errno));
  }
  return std::unique_ptr<KvCache>(
      new KvCache(shape, options.block_tokens, blocks, device, static_cast<float*>(memory)));
}

KvCache::KvCache(const KvShape& shape, std::int64_t block_tokens, std::int64_t blocks,
                 at::Device device, float* arena)
    : layers_(shape.layers),
      block_tokens_(block_tokens),
      token_stride_(shape.width),
      layer_part_(block_tokens * token_stride_),
      block_stride_(layers_ * 2 * layer_part_),
      device_(device),
      arena_(arena),
      references_(static_cast<std::size_t>(blocks), 0),
      cached_(static_cast<std::size_t>(blocks), false) {
  free_.reserve(references_.size());
  for (std::int64_t block = blocks - 1; block >= 0; --block)
    free_.push_back(static_cast<std::int32_t>(block));
}

KvCache::~KvCache() {
  if (arena_ != nullptr)
    munmap(arena_, references_.size() * static_cast<std::size_t>(block_bytes()));
}

const at::Tensor& KvCache::rows() {
  if (rows_.defined()) return rows_;
  const std::vector<std::int64_t> shape{blocks() * rows_per_block(), token_stride_};
  rows_ = arena_ != nullptr
              ? at::from_blob(arena_, shape, at::TensorOptions().dtype(at::kFloat))
              : at::empty(shape, at::TensorOptions().dtype(at::kFloat).device(device_));
  return rows_;
}

std::optional<std::int32_t> KvCache::allocate() {
  if (free_.empty()) return std::nullopt;
  const std::int32_t block = free_.back();
  free_.pop_back();
  references_[static_cast<std::size_t>(block)] = 1;
  return block;
}

void KvCache::retain(std::int32_t block) {
  const auto at = static_cast<std::size_t>(block);
  CHECK(references_[at] > 0);
  if (++references_[at] == 2 && cached_[at]) --idle_cached_;
}

void KvCache::release(std::int32_t block) {
  const auto at = static_cast<std::size_t>(block);
  CHECK(references_[at] > 0);
  const std::int32_t references = --references_[at];
  if (references == 1 && cached_[at]) ++idle_cached_;
  if (references > 0) return;
  CHECK(!cached_[at]);
  free_.push_back(block);
}

void KvCache::set_cached(std::int32_t block, bool cached) {
  const auto at = static_cast<std::size_t>(block);
  CHECK(references_[at] > 0);
  if (cached_[at] == cached) return;
  cached_[at] = cached;
  if (references_[at] == 1) idle_cached_ += cached ? 1 : -1;
}

void KvCache::release_memory() {
  CHECK(free_blocks() == blocks());
  if (arena_ != nullptr)
    madvise(arena_, references_.size() * static_cast<std::size_t>(block_bytes()), MADV_DONTNEED);
  else
    rows_ = at::Tensor();
}

void KvCache::save(std::int32_t block, float* to) const {
  if (arena_ != nullptr)
    std::copy_n(arena_ + block * block_stride_, block_stride_, to);
  else
    at::from_blob(to, {rows_per_block(), token_stride_}, at::TensorOptions().dtype(at::kFloat))
        .copy_(rows_.narrow(0, block * rows_per_block(), rows_per_block()));
}

void KvCache::load(std::int32_t block, const float* from) {
  if (arena_ != nullptr) {
    std::copy_n(from, block_stride_, arena_ + block * block_stride_);
    return;
  }
  const at::Tensor saved =
      at::from_blob(const_cast<float*>(from), {rows_per_block(), token_stride_},
                    at::TensorOptions().dtype(at::kFloat));
  rows().narrow(0, block * rows_per_block(), rows_per_block()).copy_(saved);
}

void KvCache::copy(std::int32_t from, std::int32_t to, std::int64_t tokens) {
  CHECK(tokens <= block_tokens_);
  if (arena_ == nullptr) {
    const auto block = [&](std::int32_t index) {
      return rows()
          .narrow(0, index * rows_per_block(), rows_per_block())
          .view({2 * layers_, block_tokens_, token_stride_})
          .narrow(1, 0, tokens);
    };
    block(to).copy_(block(from));
    return;
  }
  for (std::int64_t part = 0; part < 2 * layers_; ++part) {
    const float* source = arena_ + from * block_stride_ + part * layer_part_;
    std::copy_n(source, tokens * token_stride_, arena_ + to * block_stride_ + part * layer_part_);
  }
}

}  // namespace rl
