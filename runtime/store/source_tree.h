// SourceTree: the tree of nodes that copy an object from each other. The node that has it sends a
// few copies however many nodes ask. Private to runtime/store.
//
// The nodes that ask form a tree below the one that has the object, filled level by level. Each
// serves its children while its own copy is still arriving. One that loses its parent comes back
// and is served by the root itself, whatever the tree says, so that no circle can form.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/transport/channel.h"

namespace runtime::object_detail {

/// Plain bookkeeping of the node that has the objects.
class SourceTree {
 public:
  /// How many copies each node sends of one object.
  static constexpr int kFanOut = 2;

  /// From whom `asker` is to copy the object: an endpoint, or empty for the root itself. `failed`:
  /// who was named before and did not do.
  std::string assign(std::uint64_t extent, const ObjectId& object, const std::string& asker,
                     const std::string& failed);
  /// The node behind this connection has (some of) the object; it is told when it ends.
  void add_reader(std::uint64_t extent, const ObjectId& object,
                  const std::shared_ptr<Channel>& channel);

  struct Shared {
    std::vector<ObjectId> objects;
    std::vector<std::shared_ptr<Channel>> readers;  // those that are still connected
  };
  /// The extent has ended, and with it the trees of its objects.
  Shared take(std::uint64_t extent);

 private:
  struct Receiver {
    std::string endpoint;
    int children = 0;
  };
  struct Tree {
    int root_children = 0;
    std::vector<Receiver> receivers;  // level by level
  };
  struct Extent {
    std::map<ObjectId, Tree> trees;
    std::map<std::uint64_t, std::weak_ptr<Channel>> readers;  // by serial
  };

  std::map<std::uint64_t, Extent> extents_;
};

}  // namespace runtime::object_detail
