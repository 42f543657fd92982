// The awaitables behind the templates of runtime/coroutine.h.
#pragma once

#include "runtime/call/fwd.h"
#include "runtime/call/object_state.h"
#include "runtime/core/asio.h"
#include "runtime/core/result.h"
#include "runtime/transport/buffer.h"

namespace runtime {

namespace coroutine_detail {
/// Resumes when the object is settled. Errors: kDeadlineExceeded, kCancelled.
asio::awaitable<Status> settled(ObjectStatePtr object, Deadline deadline);
/// Says that the calling coroutine is the first of its call. In one of the actor's turns.
void mark_own_chain(const asio::any_io_executor& executor,
                    const asio::cancellation_state& cancellation);
/// Resumes when its bytes are here. Errors: also the object's own, kObjectLost.
asio::awaitable<Result<Buffer>> opened(ObjectStatePtr object, Deadline deadline);
}  // namespace coroutine_detail

}  // namespace runtime
