#include "rl/run/rl/references.h"

#include <algorithm>
#include <utility>

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// By worker and sample, a 1 where another teacher than this one is asked.
SampleMarks of_other_teachers(const StepBatch& batch, const NamedTeacher& teacher) {
  SampleMarks marks;
  for (const WorkerShare& share : batch.shares) {
    std::vector<std::uint8_t>& of_worker = marks.emplace_back();
    for (const SampleGroup& group : share.groups)
      of_worker.insert(of_worker.end(), group.samples.size(),
                       group.task.teacher == teacher.rows ? 0 : 1);
  }
  return marks;
}

// The passes over the samples without a mark.
ScoringPasses passes_without(const StepBatch& batch, const SampleMarks& marks,
                             const std::vector<PassLimits>& limits) {
  std::vector<std::vector<std::int64_t>> tokens = batch.tokens_by_sample();
  for (std::size_t worker = 0; worker < tokens.size(); ++worker) {
    std::vector<std::int64_t> kept;
    for (std::size_t i = 0; i < tokens[worker].size(); ++i) {
      if (marks[worker][i] == 0) kept.push_back(tokens[worker][i]);
    }
    tokens[worker] = std::move(kept);
  }
  return plan_scoring(tokens, limits);
}

Result<std::vector<Referenced>> score_all(ReferenceCalls& calls, const StepBatch& batch) {
  return calls.score(batch.batches(), plan_scoring(batch.tokens_by_sample(), calls.limits()));
}

void put_said(StepBatch& batch, std::vector<Referenced> said, Referenced WorkerShare::*place) {
  for (std::size_t worker = 0; worker < batch.shares.size(); ++worker)
    batch.shares[worker].*place = std::move(said[worker]);
}

}  // namespace

Status References::ask(StepBatch& batch, StepTimer& timer) {
  if (reference_ != nullptr) {
    Result<std::vector<Referenced>> said = score_all(*reference_, batch);
    if (!said.ok()) return said.status();
    put_said(batch, std::move(*said), &WorkerShare::reference);
    timer.lap("ref");
  }
  if (teachers_.empty()) return {};
  if (const Status taught = teach(batch); !taught.ok()) return taught;
  timer.lap("teacher");
  return {};
}

// Of several each adds to what those before it said what it says of the samples of its rows.
Status References::teach(StepBatch& batch) {
  if (teachers_.size() == 1) {
    Result<std::vector<Referenced>> taught = score_all(*teachers_.front().calls, batch);
    if (!taught.ok()) return taught.status().with_context("the teacher's log-probabilities");
    put_said(batch, std::move(*taught), &WorkerShare::taught);
    return {};
  }
  if (const Status known = check_teachers(batch); !known.ok()) return known;
  std::vector<Referenced> so_far(batch.shares.size());
  for (const TeacherCalls& teacher : teachers_) {
    const SampleMarks others = of_other_teachers(batch, teacher.named);
    Result<std::vector<Referenced>> taught = teacher.calls->score_some(
        batch.batches(), others, so_far, passes_without(batch, others, teacher.calls->limits()));
    if (!taught.ok())
      return taught.status().with_context("the log-probabilities of teacher " + teacher.named.name);
    so_far = std::move(*taught);
  }
  put_said(batch, std::move(so_far), &WorkerShare::taught);
  return {};
}

// Samples of a checkpoint are for the teachers of the run that generated them.
Status References::check_teachers(const StepBatch& batch) const {
  for (const WorkerShare& share : batch.shares) {
    for (const SampleGroup& group : share.groups) {
      const bool known = std::any_of(
          teachers_.begin(), teachers_.end(),
          [&](const TeacherCalls& teacher) { return teacher.named.rows == group.task.teacher; });
      if (!known)
        return runtime::invalid_argument(group.task.where +
                                         ": its samples were generated for a teacher of '" +
                                         group.task.teacher +
                                         "', which is no longer configured: keep the keys of "
                                         "distillation.teacher_models, or start "
                                         "again (trainer.resume_mode=disable)");
    }
  }
  return {};
}

Status References::leave_out(StepBatch& batch, const SampleMarks& marks) {
  // Of what several teachers say together any of them can.
  for (auto [calls, place] :
       {std::pair{reference_, &WorkerShare::reference},
        std::pair{teachers_.empty() ? nullptr : teachers_.front().calls, &WorkerShare::taught}}) {
    if (calls == nullptr) continue;
    std::vector<Referenced> said;
    for (const WorkerShare& share : batch.shares) said.push_back(share.*place);
    Result<std::vector<Referenced>> rest = calls->leave_out(batch.batches(), said, marks);
    if (!rest.ok()) return rest.status();
    put_said(batch, std::move(*rest), place);
  }
  return {};
}

}  // namespace rl
