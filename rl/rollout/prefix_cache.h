// The cache of prefixes that sequences share: a tree of full cache blocks, found by the tokens that
// they hold.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "rl/rollout/kv_cache.h"

namespace rl {

/// A radix tree whose edges are the tokens of one full block (as SGLang's, Zheng et al. 2024,
/// arXiv:2312.07104). Keys and values of a token depend on the tokens up to it, the weights, and
/// the angles of its stretch (see Rope). So a path from a stretch's root names the bits of its
/// blocks.
///
/// The tree holds one reference to each of its blocks. A block that no one else holds is idle, and
/// goes when memory is wanted: leaves first, the one unused for longest first. Who holds a block
/// holds those before it on its path, so that no node is removed under a sequence that stands
/// there.
///
/// One thread at a time; borrows the cache.
class PrefixCache {
 public:
  struct Node;

  /// Where a sequence stands in the tree. A value; the default is the beginning of a sequence that
  /// may not be added.
  struct Place {
    Node* node = nullptr;
    std::int64_t blocks = 0;  // of the sequence that are in the tree: a path down to `node`
    std::uint64_t epoch = 0;
  };

  explicit PrefixCache(KvCache& cache);
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  struct Match {
    std::vector<std::int32_t> blocks;  // retained for the caller
    std::int64_t tokens = 0;  // in them that are those asked for; the last block may agree in part,
                              // and is then to be copied before it is written
    Place place;
  };

  /// The longest beginning of `ids` that is there.
  Match match(std::int64_t stretch, std::span<const std::int32_t> ids);

  /// Adds the full blocks of a sequence whose keys and values are there, `computed` tokens of
  /// `ids`. Where the tree already has a block for the same tokens the sequence takes that one, and
  /// gives its own back. Nothing happens at a place from before a clear().
  void publish(std::int64_t stretch, std::span<const std::int32_t> ids, std::int64_t computed,
               std::vector<std::int32_t>& blocks, Place& place);

  /// Blocks that evict() could free.
  std::int64_t idle() const { return cache_.idle_cached_blocks(); }
  std::int64_t blocks() const { return size_; }

  /// Whether publish() adds what a sequence at that place computes.
  bool takes(const Place& place) const { return place.epoch == epoch_; }

  /// Frees N idle blocks, or all there are; none for a number below 1.
  void evict(std::int64_t blocks);

  /// Forgets everything: the weights are others. Sequences keep their blocks, and their places
  /// become void.
  void clear();

  std::int64_t evicted() const { return evicted_; }

 private:
  using Children = std::map<std::vector<std::int32_t>, std::unique_ptr<Node>>;

  Node* root(std::int64_t stretch);
  void touch(Node& node);
  void remove(Node& leaf);

  KvCache& cache_;
  std::map<std::int64_t, std::unique_ptr<Node>> roots_;  // by stretch; they hold no block
  std::set<std::pair<std::uint64_t, Node*>> leaves_;     // by last use
  std::uint64_t clock_ = 0;
  std::uint64_t epoch_ = 1;
  std::int64_t size_ = 0;
  std::int64_t evicted_ = 0;
};

}  // namespace rl
