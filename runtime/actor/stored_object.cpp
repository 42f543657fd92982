#include "runtime/actor/stored_object.h"

namespace runtime {

StoredObject::StoredObject(std::shared_ptr<ObjectClient> client, ObjectLocation location, bool owned)
    : client_(std::move(client)), location_(std::move(location)), owned_(owned) {}

StoredObject::~StoredObject() {
  if (owned_) client_->free(location_);
}

Result<Buffer> StoredObject::open(Deadline deadline) {
  Result<ObjectView> view = client_->get(location_, deadline);
  if (!view.ok()) return view.status();
  return view->buffer();
}

}  // namespace runtime
