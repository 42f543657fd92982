// HeldResults: results of this process's actors that refer to objects, kept until their callers
// hold none of them any more.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "runtime/call/object_state.h"
#include "runtime/core/ids.h"
#include "runtime/transport/channel.h"

namespace runtime {

/// Any thread. Values are dropped outside of the lock: what they own may call back.
class HeldResults {
 public:
  /// False (and nothing is held) once the channel has ended.
  bool hold(const Channel& channel, ActorId actor, std::uint64_t sequence, ObjectValue value);
  void release(const Channel* channel, ActorId actor, std::uint64_t sequence);
  /// The connection has ended, and with it what was held for it; this is what that was.
  std::vector<ObjectValue> release_all(const Channel* channel);

 private:
  using Key = std::tuple<std::uint64_t /* the channel's serial */, ActorId, std::uint64_t>;

  std::mutex mutex_;
  std::map<Key, ObjectValue> held_;
};

}  // namespace runtime
