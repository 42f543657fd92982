#include "runtime/worker/held_results.h"

#include <vector>

#include "runtime/transport/channel.h"

namespace runtime {

bool HeldResults::hold(const Channel& channel, ActorId actor, std::uint64_t sequence,
                       ObjectValue value) {
  std::lock_guard lock(mutex_);
  // Looked at under the lock, so that release_all() comes after it.
  if (channel.closed()) return false;
  held_.emplace(Key(channel.serial(), actor, sequence), std::move(value));
  return true;
}

void HeldResults::release(const Channel* channel, ActorId actor, std::uint64_t sequence) {
  ObjectValue released;
  std::lock_guard lock(mutex_);
  if (auto found = held_.find(Key(channel->serial(), actor, sequence)); found != held_.end()) {
    released = std::move(found->second);
    held_.erase(found);
  }
}

std::vector<ObjectValue> HeldResults::release_all(const Channel* channel) {
  std::vector<ObjectValue> released;
  std::lock_guard lock(mutex_);
  for (auto at = held_.lower_bound(Key(channel->serial(), ActorId(), 0));
       at != held_.end() && std::get<0>(at->first) == channel->serial();) {
    released.push_back(std::move(at->second));
    at = held_.erase(at);
  }
  return released;
}

}  // namespace runtime
