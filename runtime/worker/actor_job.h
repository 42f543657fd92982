// ActorJob: an entry of an actor's queue: a call, or its constructor.
#pragma once

#include <functional>
#include <memory>

#include "runtime/call/call_wire.h"
#include "runtime/call/object_state.h"
#include "runtime/call/registry.h"
#include "runtime/control/membership.h"
#include "runtime/core/result.h"
#include "runtime/transport/channel.h"

namespace runtime {

struct ActorJob {
  // Of a call.
  std::shared_ptr<Channel> channel;
  Message request;  // without its payload; its id and kind make the reply
  CallRequest call;
  const MethodEntry* method = nullptr;  // null: the actor's class has none such
  // Of a constructor.
  std::unique_ptr<const ActorSpec> spec;
  std::function<void(Status)> answer;
  // Of neither.
  bool tells_of_drain = false;  // the node is about to leave

  ObjectValue arguments;
  Deadline deadline = Deadline::max();
  std::unique_ptr<ActorJob> next;  // in the line
};

/// Jobs in order of arrival. Takes no memory while empty, since a process may have very many of
/// them.
class JobLine {
 public:
  JobLine() = default;
  JobLine(const JobLine&) = delete;
  JobLine& operator=(const JobLine&) = delete;
  ~JobLine() {
    while (pop()) {  // one by one: a long chain of destructors would overflow the stack
    }
  }

  bool empty() const { return first_ == nullptr; }
  std::size_t size() const { return size_; }

  void push(std::unique_ptr<ActorJob> job) {
    ActorJob* added = job.get();
    (last_ ? last_->next : first_) = std::move(job);
    last_ = added;
    ++size_;
  }
  void push_front(std::unique_ptr<ActorJob> job) {
    job->next = std::move(first_);
    first_ = std::move(job);
    if (!last_) last_ = first_.get();
    ++size_;
  }
  /// Null when empty.
  std::unique_ptr<ActorJob> pop() {
    if (!first_) return nullptr;
    std::unique_ptr<ActorJob> job = std::move(first_);
    first_ = std::move(job->next);
    if (!first_) last_ = nullptr;
    --size_;
    return job;
  }
  template <class Matches>
  bool contains(Matches&& matches) const {
    for (const ActorJob* job = first_.get(); job; job = job->next.get()) {
      if (matches(*job)) return true;
    }
    return false;
  }
  /// The first that matches, taken out; null: none does.
  template <class Matches>
  std::unique_ptr<ActorJob> take_first(Matches&& matches) {
    ActorJob* before = nullptr;
    for (std::unique_ptr<ActorJob>* link = &first_; *link; link = &(*link)->next) {
      if (!matches(**link)) {
        before = link->get();
        continue;
      }
      std::unique_ptr<ActorJob> job = std::move(*link);
      *link = std::move(job->next);
      if (!*link) last_ = before;
      --size_;
      return job;
    }
    return nullptr;
  }

 private:
  std::unique_ptr<ActorJob> first_;
  ActorJob* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace runtime
