// Waits in a test for what happens on an event loop of another thread.
#pragma once

#include <chrono>

#include "runtime/transport/blocking.h"
#include "tests/support/eventually.h"

namespace runtime {

/// Does it on the loop, and waits until it is done.
template <class Work>
void run_on(EventLoop& loop, Work work) {
  on_loop(loop, [&] {
    work();
    return true;
  });
}

/// Waits until the condition, which is looked at on the loop, holds.
template <class Condition>
bool comes_true(EventLoop& loop, Condition condition) {
  return support::eventually([&] { return on_loop(loop, [&] { return bool(condition()); }); },
                             std::chrono::seconds(20), std::chrono::milliseconds(1));
}

}  // namespace runtime
