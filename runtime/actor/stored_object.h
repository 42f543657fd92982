// StoredObject: an object in a node's store, owned by this process or borrowed from another.
#pragma once

#include <memory>

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

  /// Pins the object on this node while the buffer lives, fetching it if it is on another and bringing it back if it is on disk; blocks. While
  /// another view of it lives in this process it costs no message. A reference alone pins nothing, so that the store may move what nobody reads.
  Result<Buffer> open(Deadline deadline);

 private:
  const std::shared_ptr<ObjectClient> client_;
  const ObjectLocation location_;
  const bool owned_;
};

}  // namespace runtime
