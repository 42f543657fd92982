// The head's part in jobs: their ends, and questions about them.
#include "runtime/core/log.h"
#include "runtime/head/head.h"

namespace runtime {

namespace {

// For what a node has to be told, however busy it is.
constexpr auto kTellTimeout = std::chrono::seconds(30);

void ignore(Result<ControlAnswer>) {}

Status no_such_job(JobId job) {
  return not_found("no job has the id " + job.hex() + " (any more): the last " +
                   std::to_string(ClusterTables::kEndedJobsKept) + " that ended are remembered");
}

}  // namespace

const JobRecord* Head::job_in(const GroupState& group) const {
  const JobRecord* job = tables_.job(group.job);
  return job && job->info.place == group.spec.group ? job : nullptr;
}

bool Head::has_place_on(const JobInfo& job, GroupId place, NodeId node) const {
  const GroupState* group = place.is_none() || place != job.place ? nullptr : tables_.group(place);
  return group && group->job == job.job && group->placed && group->nodes.front() == node &&
         job.pid == 0;
}

void Head::on(const Call& call, control::EndJob& body, ControlAnswerer answer) {
  // Of a job only the node where it runs knows the end: not the one where it waited for its place,
  // nor one where somebody names another's job.
  const JobRecord* record = tables_.job(body.job);
  if (record && record->info.running && record->info.node != call.from)
    return answer(ControlAnswer{});
  if (body.goes_on && tables_.job_runs(body.job)) {
    commit(command::ReleaseJob{body.job});
    end_cluster_side(body.job);
  } else if (!body.goes_on) {
    end_job({body.job, body.outcome == JobOutcome::kNone ? JobOutcome::kFailed : body.outcome,
             std::move(body.cause), body.ended_ms});
  }
  answer(ControlAnswer{});
}

void Head::on(const Call&, control::QueryJob& body, ControlAnswerer answer) {
  const JobRecord* record = tables_.job(body.job);
  if (record)
    answer(ControlAnswer{record->info});
  else
    answer(no_such_job(body.job));
}

void Head::on(const Call& call, control::CancelJob& body, ControlAnswerer answer) {
  const JobRecord* record = tables_.job(body.job);
  if (!record) return answer(no_such_job(body.job));
  if (!record->info.running) return answer(ControlAnswer{});
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(call.deadline - now_());
  links_.request(record->info.node,
                 ControlRequest{body.job, std::max(left, std::chrono::milliseconds(1)), body},
                 std::move(answer));
}

void Head::tell_of_end(JobId job) {
  for (const auto& [node, info] : tables_.nodes()) tell_of_end(job, node);
}

void Head::tell_of_end(JobId job, NodeId node) {
  control::EndJob end;
  end.job = job;
  end.files_needed = tables_.job_serves(job);
  links_.request(node, ControlRequest{job, kTellTimeout, std::move(end)}, ignore);
}

void Head::end_job(const command::EndJob& end) {
  if (!tables_.job_runs(end.job)) return;
  commit(end);
  LOG(info, "job {} {}: {}", end.job.short_hex(), job_state(tables_.job(end.job)->info),
      end.cause.text);
  end_cluster_side(end.job);
}

void Head::end_cluster_side(JobId job) {
  tell_of_end(job);
  const bool goes_on = tables_.job_runs(job);
  std::vector<ActorId> unplaced;
  std::vector<ActorId> started;
  for (const auto& [id, record] : tables_.actors()) {
    if (record.job != job || record.phase == ActorPhase::kDead || record.spec.outlives_job)
      continue;
    if (record.phase == ActorPhase::kPending)
      unplaced.push_back(id);
    else if (goes_on)
      started.push_back(id);
  }
  for (ActorId id : started)
    commit(command::ActorEnds{id});  // else it might be started again, as the job runs
  for (ActorId id : unplaced) {
    DeathCause cause;
    cause.text = "its job ended";
    actor_dead(id, cause, cancelled("job " + job.short_hex() + " ended"));
  }
  std::vector<GroupId> groups;
  for (const auto& [id, group] : tables_.groups()) {
    if (group.job == job && !group.spec.detached) groups.push_back(id);
  }
  const JobRecord* record = tables_.job(job);
  const std::string why = record && !record->info.running && !record->info.end.text.empty()
                              ? ": " + record->info.end.text
                              : "";
  for (GroupId id : groups) drop_group(id, cancelled("job " + job.short_hex() + " ended" + why));
  published_.drop_private_names(job);
  place_pending();
}

}  // namespace runtime
