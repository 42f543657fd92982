// StoredObject: an object in a node's store, owned by this process or borrowed from another.
#pragma once

#include <memory>
#include <mutex>

#include "runtime/core/result.h"
#include "runtime/object/object_client.h"

namespace runtime {

class StoredObject {
 public:
  /// `owned`: this process created it, and frees it when the last state that refers to it goes.
  StoredObject(std::shared_ptr<ObjectClient> client, ObjectLocation location, bool owned);
  StoredObject(const StoredObject&) = delete;
  StoredObject& operator=(const StoredObject&) = delete;
  ~StoredObject();

  const ObjectLocation& location() const { return location_; }

  /// Pins the object on this node, fetching it if it is on another; blocks. Later calls return the same view.
  Result<Buffer> open(Deadline deadline);

 private:
  const std::shared_ptr<ObjectClient> client_;
  const ObjectLocation location_;
  const bool owned_;
  std::mutex mutex_;
  Buffer view_;  // empty until opened
};

}  // namespace runtime
