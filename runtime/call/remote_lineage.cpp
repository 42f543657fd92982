#include "runtime/call/remote_lineage.h"

#include "runtime/call/object_context.h"
#include "runtime/call/object_state.h"
#include "runtime/call/stored_object.h"

namespace runtime {

namespace {
// Readers have their own deadlines; what is made meanwhile serves the next one.
constexpr std::chrono::minutes kLineagePatience{10};
}  // namespace

Result<ObjectStatePtr> RemoteLineage::make_again(const ObjectLocation& lost) {
  if (keeper_.empty())
    return unimplemented("only results of tasks are, by the process that had the task run");
  auto context = context_.lock();
  if (!context) return cancelled("the runtime was stopped");
  auto made = std::make_shared<ObjectState>(context);
  context->references.remake(
      lost, keeper_, deadline_after(kLineagePatience),
      [made, weak = context_, lost, maker = maker_,
       keeper = keeper_](Result<ObjectLocation> found) {
        auto self = weak.lock();
        if (!found.ok()) return made->fail(found.status());
        if (!self) return made->fail(cancelled("the runtime was stopped"));
        if (*found == lost)
          return made->fail(
              object_lost("the process that had its task run can still read it where it was"));
        ObjectValue value;
        value.stored = self->references.borrow(*found, /*indirect=*/true);
        value.stored->set_lineage(std::make_shared<RemoteLineage>(weak, maker, keeper));
        made->fulfil(std::move(value));
      });
  return made;
}

}  // namespace runtime
