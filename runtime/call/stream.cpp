#include "runtime/call/stream.h"

#include "runtime/call/stream_state.h"

namespace runtime::stream_detail {

Result<ObjectStatePtr> next(StreamState& stream, Deadline deadline) {
  return stream.next(deadline);
}
bool ended(const StreamState& stream) { return stream.ended(); }
void abandon(StreamState& stream) { stream.abandon(); }

}  // namespace runtime::stream_detail
