#include "runtime/call/completion_queue.h"

#include "runtime/call/object_context.h"
#include "runtime/transport/block_until.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

CompletionQueue::CompletionQueue(std::vector<ObjectStatePtr> objects)
    : watched_(objects.size()), remaining_(objects.size()) {
  for (const ObjectStatePtr& object : objects) {
    if (object->is_settled()) continue;
    context_ = object->context();
    event_ = std::make_unique<Event>(context_->loop);
    break;
  }
  for (std::size_t i = 0; i < objects.size(); ++i) {
    Watched& watched = watched_[i];
    watched.object = std::move(objects[i]);
    watched.node.sink = this;
    watched.linked = watched.object->add_waiter(watched.node);
    if (!watched.linked) on_settled(watched.node, *watched.object);
  }
}

CompletionQueue::~CompletionQueue() {
  for (Watched& watched : watched_) release(watched);
}

void CompletionQueue::on_settled(WaitNode& node, const ObjectState&) {
  // The node is the first member of its entry, and entries lie in a vector that does not grow.
  const auto position =
      static_cast<std::size_t>(reinterpret_cast<Watched*>(&node) - watched_.data());
  std::lock_guard lock(mutex_);
  settled_.push_back(position);
  if (event_) event_->set();
}

void CompletionQueue::release(Watched& watched) {
  if (watched.linked) watched.object->remove_waiter(watched.node);
  watched.linked = false;
  watched.object.reset();
}

std::optional<std::size_t> CompletionQueue::next(Deadline deadline) {
  while (remaining_ > 0) {
    std::optional<std::size_t> position;
    {
      std::lock_guard lock(mutex_);
      if (!settled_.empty()) {
        position = settled_.front();
        settled_.pop_front();
      } else if (event_) {
        event_->reset();
      }
    }
    if (position) {
      release(watched_[*position]);
      --remaining_;
      return position;
    }
    if (!block_until(context_->loop, *event_, deadline)) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace runtime
