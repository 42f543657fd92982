// Items that could not be written and wait for another try.
#pragma once

#include <deque>

#include "runtime/core/status.h"

namespace rl {

/// Writes items, oldest first, up to the first that cannot be written, whose error is returned;
/// those that are written leave the queue. `write` takes an item and returns a Status.
template <class Item, class Write>
runtime::Status write_in_order(std::deque<Item>& items, Write write) {
  while (!items.empty()) {
    if (runtime::Status written = write(items.front()); !written.ok()) return written;
    items.pop_front();
  }
  return {};
}

}  // namespace rl
