#include "rl/rollout/prefix_cache.h"

#include <algorithm>

#include "runtime/core/check.h"

namespace rl {
namespace {

std::int64_t common_beginning(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

}  // namespace

struct PrefixCache::Node {
  Node* parent = nullptr;
  std::int32_t block = -1;
  std::uint64_t used =
      0;  // clock_ at the last use; of a node with children no more than a lower bound
  Children children;
  Children::iterator here;  // in the parent's children
};

PrefixCache::PrefixCache(KvCache& cache) : cache_(cache) {}

PrefixCache::~PrefixCache() { clear(); }

PrefixCache::Node* PrefixCache::root(std::int64_t stretch) {
  std::unique_ptr<Node>& root = roots_[stretch];
  if (root == nullptr) root = std::make_unique<Node>();
  return root.get();
}

void PrefixCache::touch(Node& node) {
  if (node.parent == nullptr) return;
  const bool leaf = leaves_.erase({node.used, &node}) > 0;
  node.used = ++clock_;
  if (leaf) leaves_.insert({node.used, &node});
}

PrefixCache::Match PrefixCache::match(std::int64_t stretch, std::span<const std::int32_t> ids) {
  const auto size = static_cast<std::size_t>(cache_.block_tokens());
  Match found;
  Node* node = root(stretch);
  const auto take = [&](const Node& child, std::int64_t tokens) {
    cache_.retain(child.block);
    found.blocks.push_back(child.block);
    found.tokens += tokens;
  };
  std::size_t at = 0;
  for (; at + size <= ids.size(); at += size) {
    const auto child = node->children.find(
        std::vector<std::int32_t>(ids.begin() + static_cast<std::ptrdiff_t>(at),
                                  ids.begin() + static_cast<std::ptrdiff_t>(at + size)));
    if (child == node->children.end()) break;
    node = child->second.get();
    take(*node, static_cast<std::int64_t>(size));
  }
  found.place = {
      .node = node, .blocks = static_cast<std::int64_t>(found.blocks.size()), .epoch = epoch_};
  touch(*node);
  // Part of a block: of children in the order of their tokens, one next to the place of what is
  // looked for agrees for longest.
  const std::span<const std::int32_t> rest = ids.subspan(at, std::min(size, ids.size() - at));
  if (rest.empty() || node->children.empty()) return found;
  const auto behind =
      node->children.lower_bound(std::vector<std::int32_t>(rest.begin(), rest.end()));
  Node* best = nullptr;
  std::int64_t agree = 0;
  const auto consider = [&](const Children::iterator& child) {
    const std::int64_t tokens = common_beginning(rest, child->first);
    if (tokens > agree) agree = tokens, best = child->second.get();
  };
  if (behind != node->children.end()) consider(behind);
  if (behind != node->children.begin()) consider(std::prev(behind));
  if (best == nullptr) return found;
  touch(*best);
  take(*best, agree);
  return found;
}

void PrefixCache::publish(std::int64_t stretch, std::span<const std::int32_t> ids,
                          std::int64_t computed, std::vector<std::int32_t>& blocks, Place& place) {
  if (!takes(place)) return;
  const std::int64_t size = cache_.block_tokens();
  for (; (place.blocks + 1) * size <= computed; ++place.blocks) {
    Node* parent = place.node != nullptr ? place.node : root(stretch);
    const std::span<const std::int32_t> tokens =
        ids.subspan(static_cast<std::size_t>(place.blocks * size), static_cast<std::size_t>(size));
    std::int32_t& block = blocks[static_cast<std::size_t>(place.blocks)];
    const auto [child, added] =
        parent->children.try_emplace(std::vector<std::int32_t>(tokens.begin(), tokens.end()));
    if (added) {
      child->second = std::make_unique<Node>();
      Node& node = *child->second;
      node.parent = parent;
      node.block = block;
      node.here = child;
      node.used = ++clock_;
      leaves_.erase({parent->used, parent});
      leaves_.insert({node.used, &node});
      cache_.retain(block);
      cache_.set_cached(block, true);
      ++size_;
    } else if (child->second->block != block) {  // computed twice at the same time: the same bits
      cache_.retain(child->second->block);
      cache_.release(block);
      block = child->second->block;
    }
    place.node = child->second.get();
  }
}

void PrefixCache::remove(Node& leaf) {
  CHECK(leaf.children.empty());
  leaves_.erase({leaf.used, &leaf});
  cache_.set_cached(leaf.block, false);
  cache_.release(leaf.block);
  --size_;
  Node* parent = leaf.parent;
  const std::uint64_t used = leaf.used;
  parent->children.erase(leaf.here);
  if (parent->parent == nullptr || !parent->children.empty()) return;
  parent->used = std::max(parent->used, used);
  leaves_.insert({parent->used, parent});
}

void PrefixCache::evict(std::int64_t blocks) {
  // Leaves that sequences stand on are passed over: there are no more of them than sequences.
  for (auto leaf = leaves_.begin(); blocks > 0 && leaf != leaves_.end();) {
    if (cache_.shared(leaf->second->block)) {
      ++leaf;
      continue;
    }
    remove(*leaf->second);
    ++evicted_;
    --blocks;
    leaf = leaves_.begin();  // its parent may be older than what follows
  }
}

void PrefixCache::clear() {
  ++epoch_;
  while (!leaves_.empty()) remove(*leaves_.begin()->second);
  roots_.clear();
  CHECK(size_ == 0);
}

}  // namespace rl
