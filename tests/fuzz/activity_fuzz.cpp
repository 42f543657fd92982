// A process's activity page, as its node reads it: users' code may have written anything there. The
// input is places and what is written to them.
#include <cstdint>
#include <cstring>
#include <memory>

#include "runtime/observe/activity_view.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using runtime::activity::Layout;
  static const auto layout = std::make_unique<Layout>();
  auto* bytes = reinterpret_cast<std::uint8_t*>(layout.get());
  std::uint64_t after = 0;
  std::size_t at = 0;
  if (size >= sizeof after) std::memcpy(&after, data, at = sizeof after);
  for (; at + 12 <= size; at += 12) {
    std::uint32_t place = 0;
    std::memcpy(&place, data + at, sizeof place);
    // Half of them go to the header, which says how much of the rest there is.
    const std::size_t to = (place % 2 == 0 ? place / 2 % 64 : place) % (sizeof(Layout) - 8);
    std::memcpy(bytes + to, data + at + 4, 8);
  }
  // What bounds them is tested elsewhere; without this each run would walk through all of the page.
  layout->threads.store(layout->threads.load() % 8);
  layout->actors.store(layout->actors.load() % 64);
  layout->events.store(layout->events.load() % 256);
  (void)runtime::read_snapshot(*layout, true);
  (void)runtime::read_trace(*layout, after);
  return 0;
}
