// ResidentPins: pins of extents that are in memory, brought back from disk where they are there.
// Private to this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/store/ended_owners.h"
#include "runtime/store/spiller.h"
#include "runtime/store/store_memory.h"

namespace runtime::object_detail {

/// Lives on the event loop.
class ResidentPins {
 public:
  using Client = ExtentTable::Client;
  using Done = UniqueFunction<void(Result<Extent>)>;

  ResidentPins(std::shared_ptr<StoreMemory> memory, std::shared_ptr<Spiller> spiller,
               std::shared_ptr<const EndedOwners> ended)
      : memory_(std::move(memory)), spiller_(std::move(spiller)), ended_(std::move(ended)) {}

  /// Calls `done` with the pinned extent once its bytes are in memory; the pin is the client's (or
  /// the store's). Errors: kObjectLost, kResourceExhausted.
  void pin(std::uint64_t extent, Client client, Deadline deadline, Done done);

 private:
  const std::shared_ptr<StoreMemory> memory_;
  const std::shared_ptr<Spiller> spiller_;
  const std::shared_ptr<const EndedOwners> ended_;
};

}  // namespace runtime::object_detail
