#include "runtime/node/submitter_gate.h"

#include <variant>

namespace runtime {

namespace {

struct IsForSubmitters {
  const OwnsJob& owns_job;

  template <class Body>
  bool operator()(const Body&) const {
    return false;
  }
  bool operator()(const control::SubmitJob&) const { return true; }
  bool operator()(const control::QueueJob&) const { return true; }
  bool operator()(const control::OfferFiles&) const { return true; }
  bool operator()(const control::StoreFile&) const { return true; }
  bool operator()(const control::QueryJob&) const { return true; }
  // Only by the id, which its maker alone knows.
  bool operator()(const control::QueryGroup& body) const { return body.name.empty(); }
  bool operator()(const control::QueryCluster&) const { return true; }
  bool operator()(const control::CancelJob& body) const { return owns_job(body.job); }
};

void hide_job(JobInfo& job, const std::optional<std::string>& user) {
  if (user && *user == job.user) return;
  job.command.clear();
  job.end.text.clear();
  job.end.output_tail.clear();
  job.place = {};
}

}  // namespace

void hide_from_submitter(ControlAnswer& answer, const std::optional<std::string>& user) {
  if (auto* job = std::get_if<JobInfo>(&answer)) hide_job(*job, user);
  auto* cluster = std::get_if<ClusterState>(&answer);
  if (!cluster) return;
  for (JobInfo& job : cluster->jobs) hide_job(job, user);
  for (ActorState& actor : cluster->actors) {
    actor.death.text.clear();
    actor.death.output_tail.clear();
  }
  cluster->groups.clear();
}

Status check_submitter(const ControlRequest& request, const OwnsJob& owns_job) {
  if (std::visit(IsForSubmitters{owns_job}, request.body)) return {};
  return invalid_argument(
      "a submitter's token is for `starling submit`, for stopping one's own jobs and for `starling "
      "status`; all else needs the cluster's token");
}

}  // namespace runtime
