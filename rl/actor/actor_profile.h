// ProfiledActor: the base of a training run's actors, with the calls that record a profile.
#pragma once

#include "rl/model/aten_spans.h"
#include "rl/profile/recorder.h"

namespace rl {

/// The base of all classes of actors.
class ProfiledActor {
 public:
  /// Begins a recording of this actor's process: its calls, our operations, ATen's kernels.
  profile::ProfileStarted begin_profile(const profile::ProfileRequest& request) {
    if (request.wanted) record_aten_spans();
    return profile::start(request);
  }

  /// Ends it; empty where none was begun.
  profile::Recording end_profile() {
    forget_aten_spans();
    return profile::stop();
  }
};

/// The call of an actor that it is in, as a span.
class CallSpan : public profile::Span {
 public:
  explicit CallSpan(const char* method) : Span(method, profile::SpanKind::kCall) {}
};

}  // namespace rl
