#include "runtime/call/completion.h"

#include <atomic>
#include <deque>
#include <string>
#include <utility>

#include "runtime/call/completion_queue.h"

namespace runtime::completion_detail {

std::shared_ptr<CompletionQueue> watch(std::vector<ObjectStatePtr> objects) {
  return std::make_shared<CompletionQueue>(std::move(objects));
}

std::optional<std::size_t> next(CompletionQueue& queue, Deadline deadline) {
  return queue.next(deadline);
}

namespace {

/// Settles the object, behind those that this thread is settling already. So a long chain of
/// objects, each settled by the one before, is no deep recursion.
void settle_in_turn(ObjectStatePtr object, Status why) {
  using Line = std::deque<std::pair<ObjectStatePtr, Status>>;
  thread_local Line* line = nullptr;
  if (line) return (void)line->emplace_back(std::move(object), std::move(why));
  Line mine;
  mine.emplace_back(std::move(object), std::move(why));
  for (line = &mine; !mine.empty(); mine.pop_front()) {
    auto& [next, failure] = mine.front();
    if (failure.ok())
      next->fulfil({});
    else
      next->fail(std::move(failure));
  }
  line = nullptr;
}

/// Lives while it is not settled.
struct All final : Producer {
  Status cancel(const std::shared_ptr<Producer>&, CancelMode) override {
    return invalid_argument(
        "only the result of a call or of a task can be cancelled: this object waits for others");
  }
  std::vector<std::shared_ptr<Producer>> parts() const override {
    std::vector<std::shared_ptr<Producer>> parts;
    for (const std::weak_ptr<ObjectState>& weak : objects) {
      const ObjectStatePtr object = weak.lock();
      if (auto producer = object ? object->producer() : nullptr)
        parts.push_back(std::move(producer));
    }
    return parts;
  }

  std::atomic<std::size_t> left;
  ObjectStatePtr result;
  std::vector<std::weak_ptr<ObjectState>> objects;
};

}  // namespace

ObjectStatePtr when_all(ObjectContextPtr context, const std::vector<ObjectStatePtr>& objects) {
  auto all = std::make_shared<All>();
  for (const ObjectStatePtr& object : objects) all->objects.push_back(object);
  all->left = objects.size();
  all->result = std::make_shared<ObjectState>(std::move(context));
  all->result->set_producer(all);
  if (objects.empty()) all->result->fulfil({});
  for (std::size_t rank = 0; rank < objects.size(); ++rank) {
    // The object runs the action itself, so that it lives then.
    objects[rank]->then([all, rank, object = objects[rank].get()] {
      if (!object->failure().ok())
        settle_in_turn(all->result, object->failure().with_context("rank " + std::to_string(rank)));
      if (all->left.fetch_sub(1) == 1)
        settle_in_turn(all->result, {});  // without effect after a failure
    });
  }
  return all->result;
}

}  // namespace runtime::completion_detail
