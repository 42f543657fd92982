#include "runtime/transport/silence_watch.h"

#include <utility>

namespace runtime {

void SilenceWatch::start(std::weak_ptr<const void> owner, std::function<bool()> is_silent,
                         std::function<bool()> on_silent) {
  owner_ = std::move(owner);
  is_silent_ = std::move(is_silent);
  on_silent_ = std::move(on_silent);
  tick();
}

void SilenceWatch::tick() {
  timer_.expires_after(kTick);
  timer_.async_wait([this, owner = owner_](const boost::system::error_code& ec) {
    const auto held = owner.lock();
    if (ec || !held || is_stopped_) return;
    silent_ticks_ = is_silent_() ? silent_ticks_ + 1 : 0;
    if (silent_ticks_ == kTicksMax) {
      silent_ticks_ = 0;
      if (!on_silent_()) return;
    }
    tick();
  });
}

}  // namespace runtime
