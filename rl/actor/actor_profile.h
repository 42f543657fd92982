// How an actor of a training run is profiled: what all classes of actors forward to.
#pragma once

#include "rl/model/aten_spans.h"
#include "rl/profile/recorder.h"

namespace rl {

/// Begins a recording of this actor's process: its calls, our operations, ATen's kernels.
inline profile::ProfileStarted begin_actor_profile(const profile::ProfileRequest& request) {
  if (request.wanted) record_aten_spans();
  return profile::start(request);
}

/// Ends it; empty where none was begun.
inline profile::Recording end_actor_profile() {
  forget_aten_spans();
  return profile::stop();
}

/// The call of an actor that it is in, as a span.
class CallSpan : public profile::Span {
 public:
  explicit CallSpan(const char* method) : Span(method, profile::SpanKind::kCall) {}
};

}  // namespace rl
