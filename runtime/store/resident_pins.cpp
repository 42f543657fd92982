#include "runtime/store/resident_pins.h"

#include <utility>

namespace runtime::object_detail {

void ResidentPins::pin(std::uint64_t extent, Client client, Deadline deadline, Done done) {
  auto pinned = memory_->table.pin(extent, client);
  if (!pinned) return done(ended_->lost(extent));
  if (memory_->table.is_resident(extent)) return done(*pinned);
  spiller_->restore(
      extent, deadline,
      [memory = memory_, extent, client, done = std::move(done)](Status status) mutable {
        if (status.ok()) {
          auto found = memory->table.find(extent);
          if (found) return done(*found);
          status = object_lost("its memory was freed while it came back from disk");
        }
        memory->table.unpin(extent, client);  // the client may be gone, and its pins with it
        memory->changed();
        done(status);
      });
}

}  // namespace runtime::object_detail
