#include "runtime/head/job_manager.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "runtime/core/log.h"
#include "runtime/head/head_words.h"
#include "runtime/head/job_place.h"

namespace runtime {

using namespace head_words;

namespace {

// For what a node has to know, however busy it is.
constexpr auto kTellTimeout = std::chrono::seconds(30);

Status no_such_job(JobId job) {
  return not_found("no job has the id " + job.hex() + " (any more): the last " +
                   std::to_string(JobTable::kEndedKept) + " that ended are remembered");
}

}  // namespace

Status JobManager::check_start(const HeadCall& call, const JobInfo& info) const {
  if (info.job.is_none()) return invalid_argument("a job needs an id");
  const JobRecord* known = context_.tables.jobs().find(info.job);
  if (!known) return {};
  const JobInfo& before = known->info;
  const std::string name = "job " + info.job.short_hex();
  if (!before.running && !info.place.is_none()) {  // it was stopped while it waited
    const bool is_its_users = before.user == info.user;
    return cancelled(name + " has ended" + (is_its_users ? ": " + before.end.text : std::string()));
  }
  // With its place a job goes to another node, which may run it as another user; the place's id is
  // known to its submitter alone.
  const bool is_anothers =
      before.running && info.place.is_none() && !before.user.empty() && before.user != info.user;
  if (is_anothers || (before.running && before.place != info.place))
    return invalid_argument(name + " is another job already");
  if (before.running && before.node != call.from &&
      !has_place_on(context_.tables, before, info.place, call.from))
    return invalid_argument(name + " runs on another node already");
  return {};
}

void JobManager::serve(const HeadCall& call, control::StartJob& body, ControlAnswerer answer) {
  if (Status status = check_start(call, body.info); !status.ok()) return answer(status);
  body.info.node = call.from;
  body.info.running = true;
  body.info.outcome = JobOutcome::kNone;
  body.info.end = {};
  context_.commit(command::StartJob{body.info, body.driver});
  answer(ControlAnswer{body.info.job});
}

void JobManager::serve(const HeadCall& call, control::EndJob& body, ControlAnswerer answer) {
  // Only the node where a job runs knows its end. The node where it waited for its place does not,
  // nor one whose client names another's job.
  const JobRecord* record = context_.tables.jobs().find(body.job);
  if (record && record->info.running && record->info.node != call.from)
    return answer(ControlAnswer{});
  if (body.goes_on && context_.tables.jobs().runs(body.job)) {
    context_.commit(command::ReleaseJob{body.job});
    release(body.job);
  } else if (!body.goes_on) {
    end({body.job, body.outcome == JobOutcome::kNone ? JobOutcome::kFailed : body.outcome,
         std::move(body.cause), body.ended_ms});
  }
  answer(ControlAnswer{});
}

void JobManager::serve(const HeadCall&, control::QueryJob& body, ControlAnswerer answer) {
  const JobRecord* record = context_.tables.jobs().find(body.job);
  if (record)
    answer(ControlAnswer{record->info});
  else
    answer(no_such_job(body.job));
}

void JobManager::serve(const HeadCall& call, control::CancelJob& body, ControlAnswerer answer) {
  const JobRecord* record = context_.tables.jobs().find(body.job);
  if (!record) return answer(no_such_job(body.job));
  if (!record->info.running) return answer(ControlAnswer{});
  context_.links.request(
      record->info.node, ControlRequest{body.job, time_left(context_.now(), call.deadline), body},
      [this, job = body.job, answer = std::move(answer)](Result<ControlAnswer> stopped) mutable {
        // It may have ended on the way, as all of a lost node's have.
        if (!context_.tables.jobs().runs(job)) return answer(ControlAnswer{});
        answer(std::move(stopped));
      });
}

// -- Ends

void JobManager::end(const command::EndJob& end) {
  if (!context_.tables.jobs().runs(end.job)) return;
  context_.commit(end);
  LOG(info, "job {} {}: {}", end.job.short_hex(),
      job_state(context_.tables.jobs().find(end.job)->info), end.cause.text);
  release(end.job);
}

void JobManager::release(JobId job) {
  announce_end(job);
  end_actors(job);
  drop_groups(job);
  published_.drop_private_names(job);
  place_pending_();
}

void JobManager::end_actors(JobId job) {
  const bool goes_on = context_.tables.jobs().runs(job);
  std::vector<ActorId> unplaced;
  std::vector<ActorId> started;
  for (const auto& [id, record] : context_.tables.actors().all()) {
    if (record.job != job || record.phase == ActorPhase::kDead || record.spec.outlives_job)
      continue;
    if (record.phase == ActorPhase::kPending)
      unplaced.push_back(id);
    else if (goes_on)
      started.push_back(id);
  }
  for (ActorId id : started)
    context_.commit(command::ActorEnds{id});  // else it might be started again, as the job runs
  for (ActorId id : unplaced)
    actors_.die(id, cause_of("its job ended"), cancelled("job " + job.short_hex() + " ended"));
}

void JobManager::drop_groups(JobId job) {
  std::vector<GroupId> groups;
  for (const auto& [id, group] : context_.tables.groups().all()) {
    if (group.job == job && !group.spec.detached) groups.push_back(id);
  }
  const JobRecord* record = context_.tables.jobs().find(job);
  const bool has_reason = record && !record->info.running && !record->info.end.text.empty();
  const std::string why = has_reason ? ": " + record->info.end.text : "";
  for (GroupId id : groups) groups_.drop(id, cancelled("job " + job.short_hex() + " ended" + why));
}

void JobManager::announce_end(JobId job) {
  for (const auto& [node, info] : context_.tables.nodes().all()) announce_end(job, node);
}

void JobManager::announce_end(JobId job, NodeId node) {
  control::EndJob end;
  end.job = job;
  end.files_needed = context_.tables.job_serves(job);
  context_.links.request(node, ControlRequest{job, kTellTimeout, std::move(end)},
                         [](Result<ControlAnswer>) {});
}

void JobManager::outliving_actor_died(JobId job) {
  published_.drop_private_names(job);
  // Now nothing of an ended job is left that might start again.
  if (!context_.tables.job_serves(job)) announce_end(job);
}

// -- Nodes

void JobManager::node_returned(const control::RegisterNode& body) {
  const NodeId node = body.info.node;
  std::vector<JobId> over;
  for (const auto& [id, record] : context_.tables.jobs().all()) {
    const bool is_there = std::find(body.jobs.begin(), body.jobs.end(), id) != body.jobs.end();
    if (record.info.running && record.info.node == node && !is_there) over.push_back(id);
  }
  for (JobId job : over)
    end({job, JobOutcome::kFailed, cause_of("it was gone when its node came back to the head"),
         unix_milliseconds()});
  // Whether the node knows the ends of others, an earlier head has taken with it.
  for (const auto& [id, record] : context_.tables.jobs().all()) {
    if (!record.info.running) announce_end(id, node);
  }
}

void JobManager::node_lost(NodeId node, const std::string& text) {
  std::vector<JobId> jobs;
  for (const auto& [id, record] : context_.tables.jobs().all()) {
    if (record.info.running && record.info.node == node) jobs.push_back(id);
  }
  for (JobId job : jobs) end({job, JobOutcome::kFailed, cause_of(text), unix_milliseconds()});
}

}  // namespace runtime
