// SpillPlace: the folder of a node's spilled objects, which ends with the node however that ends.
#pragma once

#include <filesystem>
#include <memory>

#include "runtime/core/ids.h"
#include "runtime/core/result.h"
#include "runtime/process/file_lock.h"

namespace runtime {

/// A folder with a lock in it for as long as this object: by that others know that its node lives.
/// Nodes share the folder that it lies in.
class SpillPlace {
 public:
  /// Makes `<parent>/spill-<node>` (0700), and `parent` if it is not there; removes those of dead
  /// nodes in `parent`. Errors: kInvalidArgument (no locks there; another user's), kUnavailable,
  /// kResourceExhausted (the disk is full), each with the folder.
  static Result<std::unique_ptr<SpillPlace>> create(const std::filesystem::path& parent,
                                                    NodeId node);
  SpillPlace(const SpillPlace&) = delete;
  SpillPlace& operator=(const SpillPlace&) = delete;
  /// Removes the folder, with what was spilled to it.
  ~SpillPlace();

  const std::filesystem::path& path() const { return path_; }

  /// Restores the folder's lock if it was removed: without it the folder would stay when the node
  /// is killed. Errors: as create().
  Status refresh();

 private:
  explicit SpillPlace(std::filesystem::path path) : path_(std::move(path)) {}
  Status lock();

  const std::filesystem::path path_;
  FileLock lock_;
};

/// Removes the spill folders of this user in `parent` whose nodes have died. Only those that have a
/// lock in them, and nothing but spilled objects.
void remove_dead_spills(const std::filesystem::path& parent);

}  // namespace runtime
