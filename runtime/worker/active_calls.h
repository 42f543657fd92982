// ActiveCalls: the calls running in this process that can be notified of their cancellation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <tuple>

#include "runtime/call/call_context.h"
#include "runtime/core/ids.h"

namespace runtime {

class StreamSender;

/// Any thread. What methods attach to a cancellation runs outside of the lock.
class ActiveCalls {
 public:
  /// The context of a call that is about to run. end() it.
  CallContext begin(const Channel* channel, ActorId actor, std::uint64_t sequence,
                    Deadline deadline);
  void end(const Channel* channel, ActorId actor, std::uint64_t sequence);
  /// The stream that the call yields its values through, until its end.
  void set_stream(const Channel* channel, ActorId actor, std::uint64_t sequence,
                  std::shared_ptr<StreamSender> stream);
  /// Null: the call yields none, or has ended.
  std::shared_ptr<StreamSender> stream(const Channel* channel, ActorId actor,
                                       std::uint64_t sequence);

  void cancel(const Channel* channel, ActorId actor, std::uint64_t sequence);
  /// All calls of a caller that is gone. Cost: linear in its calls.
  void cancel_all(const Channel* channel);
  /// All calls of an actor that is being ended. Cost: linear in the calls of all actors.
  void cancel_all(ActorId actor);
  void cancel_all();

 private:
  using Key = std::tuple<std::uint64_t /* the channel's serial */, ActorId, std::uint64_t>;
  struct Call {
    std::stop_source stop;
    std::shared_ptr<StreamSender> stream;
  };
  using Calls = std::map<Key, Call>;

  template <class Which>
  void cancel_between(const Key& first, Which&& which);

  std::mutex mutex_;
  Calls calls_;
};

}  // namespace runtime
