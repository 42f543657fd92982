// References: requests to models that are not trained about a step's samples.
#pragma once

#include <string>
#include <vector>

#include "rl/metrics/step_metrics.h"
#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/step_batch.h"
#include "rl/run/rl/teachers.h"
#include "runtime/core/result.h"

namespace rl {

/// A teacher of on-policy distillation, which scores what the policy generated.
struct TeacherCalls {
  NamedTeacher named;
  ReferenceCalls* calls = nullptr;
};

class References {
 public:
  /// `reference`: null where the objective needs none. No teachers: nothing is distilled.
  References(ReferenceCalls* reference, std::vector<TeacherCalls> teachers)
      : reference_(reference), teachers_(std::move(teachers)) {}

  /// Asks about all samples. kInvalidArgument: one is for a teacher that is not there.
  runtime::Status ask(StepBatch& batch, StepTimer& timer);

  /// Of what they said, what is left without the samples with marks.
  runtime::Status leave_out(StepBatch& batch, const SampleMarks& marks);

 private:
  runtime::Status teach(StepBatch& batch);
  runtime::Status check_teachers(const StepBatch& batch) const;

  ReferenceCalls* reference_;
  std::vector<TeacherCalls> teachers_;
};

}  // namespace rl
