#include "runtime/worker/active_calls.h"

#include <vector>

#include "runtime/transport/channel.h"

namespace runtime {

CallContext ActiveCalls::begin(const Channel* channel, ActorId actor, std::uint64_t sequence,
                               Deadline deadline) {
  std::lock_guard lock(mutex_);
  return CallContext(calls_[{channel->serial(), actor, sequence}].stop.get_token(), deadline);
}

void ActiveCalls::end(const Channel* channel, ActorId actor, std::uint64_t sequence) {
  Calls::node_type ended;  // dropped outside of the lock
  std::lock_guard lock(mutex_);
  ended = calls_.extract({channel->serial(), actor, sequence});
}

void ActiveCalls::set_stream(const Channel* channel, ActorId actor, std::uint64_t sequence,
                             std::shared_ptr<StreamSender> stream) {
  std::lock_guard lock(mutex_);
  calls_[{channel->serial(), actor, sequence}].stream = std::move(stream);
}

std::shared_ptr<StreamSender> ActiveCalls::stream(const Channel* channel, ActorId actor,
                                                  std::uint64_t sequence) {
  std::lock_guard lock(mutex_);
  auto found = calls_.find({channel->serial(), actor, sequence});
  return found == calls_.end() ? nullptr : found->second.stream;
}

template <class Which>
void ActiveCalls::cancel_between(const Key& first, Which&& which) {
  std::vector<std::stop_source> sources;
  {
    std::lock_guard lock(mutex_);
    for (auto at = calls_.lower_bound(first); at != calls_.end(); ++at) {
      const auto [take, go_on] = which(at->first);
      if (take) sources.push_back(at->second.stop);
      if (!go_on) break;
    }
  }
  for (std::stop_source& source : sources) source.request_stop();
}

void ActiveCalls::cancel(const Channel* channel, ActorId actor, std::uint64_t sequence) {
  const Key wanted{channel->serial(), actor, sequence};
  cancel_between(wanted, [&](const Key& key) { return std::pair(key == wanted, false); });
}

void ActiveCalls::cancel_all(const Channel* channel) {
  cancel_between({channel->serial(), {}, 0}, [&](const Key& key) {
    const bool same = std::get<0>(key) == channel->serial();
    return std::pair(same, same);
  });
}

void ActiveCalls::cancel_all(ActorId actor) {
  cancel_between({}, [&](const Key& key) { return std::pair(std::get<1>(key) == actor, true); });
}

void ActiveCalls::cancel_all() {
  cancel_between({}, [](const Key&) { return std::pair(true, true); });
}

}  // namespace runtime
