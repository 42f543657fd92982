#include "runtime/store/source_tree.h"

#include <algorithm>

namespace runtime::object_detail {

std::string SourceTree::assign(std::uint64_t extent, const ObjectId& object,
                               const std::string& asker, const std::string& failed) {
  Tree& tree = extents_[extent].trees[object];
  const auto at = [&](const std::string& endpoint) {
    return std::find_if(tree.receivers.begin(), tree.receivers.end(),
                        [&](const Receiver& receiver) { return receiver.endpoint == endpoint; });
  };
  if (auto gone = failed.empty() ? tree.receivers.end() : at(failed); gone != tree.receivers.end())
    tree.receivers.erase(gone);
  if (at(asker) != tree.receivers.end()) return "";
  std::string parent;
  if (tree.root_children < kFanOut) {
    ++tree.root_children;
  } else {
    auto free = std::find_if(tree.receivers.begin(), tree.receivers.end(),
                             [](const Receiver& receiver) { return receiver.children < kFanOut; });
    if (free != tree.receivers.end()) {
      ++free->children;
      parent = free->endpoint;
    }
  }
  tree.receivers.push_back({asker, 0});
  return parent;
}

void SourceTree::add_reader(std::uint64_t extent, const ObjectId& object,
                            const std::shared_ptr<Channel>& channel) {
  Extent& shared = extents_[extent];
  shared.trees.try_emplace(object);
  shared.readers[channel->serial()] = channel;
}

SourceTree::Shared SourceTree::take(std::uint64_t extent) {
  Shared shared;
  auto ended = extents_.extract(extent);
  if (ended.empty()) return shared;
  for (const auto& [object, tree] : ended.mapped().trees) shared.objects.push_back(object);
  for (const auto& [serial, weak] : ended.mapped().readers) {
    if (auto channel = weak.lock(); channel && !channel->closed())
      shared.readers.push_back(std::move(channel));
  }
  return shared;
}

}  // namespace runtime::object_detail
