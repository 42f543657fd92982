#include "runtime/node/node_jobs.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "runtime/core/log.h"
#include "runtime/node/job_record.h"
#include "runtime/process/content_hash.h"
#include "runtime/process/job_user.h"

namespace runtime {

namespace {

constexpr std::size_t kEnvironmentBytesMax = 1 << 20;

Status check_environment(const Environment& env) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : env) {
    if (name.empty() || name.find('=') != std::string::npos ||
        (name + value).find('\0') != std::string::npos)
      return invalid_argument("'" + name + "' is not a variable name");
    bytes += name.size() + value.size();
  }
  if (bytes > kEnvironmentBytesMax)
    return invalid_argument("the job's environment has " + std::to_string(bytes) +
                            " bytes; at most " + std::to_string(kEnvironmentBytesMax) +
                            " are taken");
  return {};
}

SubmittedJobsOptions submitted_options(const NodeJobsOptions& options,
                                       const NodeJobs::Callbacks& callbacks) {
  return {options.runner, options.gpu_names, callbacks.is_stopping};
}

}  // namespace

NodeJobs::NodeJobs(EventLoop& loop, NodeJobsOptions options, Callbacks callbacks,
                   ClientTable& clients, EndReports& ends)
    : options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      clients_(clients),
      ends_(ends),
      files_(loop, options_.files),
      fetcher_(loop, options_.credentials, files_),
      queue_(callbacks_.head, ends),
      submitted_(loop, submitted_options(options_, callbacks_), callbacks_.head, ends, files_,
                 fetcher_),
      drivers_(
          loop, {options_.node, options_.runner.node_address},
          {callbacks_.head, [this] { return callbacks_.refuse("drivers"); },
           [this](JobId job) { return submitted_.find(job); },
           [this](JobId job) { return submitted_.runs(job); }, callbacks_.offer, callbacks_.warm},
          clients, ends) {}

// -- Requests

bool NodeJobs::serve(const std::shared_ptr<Channel>& channel, ControlRequest& request,
                     ControlAnswerer& answer) {
  if (auto* driver = std::get_if<control::RegisterDriver>(&request.body)) {
    drivers_.add(channel, request.job, std::move(driver->info), std::move(answer));
  } else if (auto* body = std::get_if<control::SubmitJob>(&request.body)) {
    submit(channel, std::move(*body), std::move(answer));
  } else if (auto* queued = std::get_if<control::QueueJob>(&request.body)) {
    queue(*channel, std::move(*queued), request.timeout, std::move(answer));
  } else if (auto* stop = std::get_if<control::CancelJob>(&request.body);
             stop && (submitted_.contains(stop->job) || queue_.contains(stop->job))) {
    // Without the head, which may be away.
    Status status = cancel(stop->job, "stopped on request");
    status.ok() ? answer(ControlAnswer{}) : answer(status);
  } else if (auto* offer = std::get_if<control::OfferFiles>(&request.body)) {
    auto shared = std::make_shared<ControlAnswerer>(std::move(answer));
    files_.offer(*offer, [shared](Result<control::FilesWanted> wanted) {
      wanted.ok() ? (*shared)(ControlAnswer{*std::move(wanted)}) : (*shared)(wanted.status());
    });
  } else if (auto* part = std::get_if<control::StoreFile>(&request.body)) {
    auto shared = std::make_shared<ControlAnswerer>(std::move(answer));
    files_.store(channel->serial(), std::move(*part), [shared](Status status) {
      status.ok() ? (*shared)(ControlAnswer{}) : (*shared)(std::move(status));
    });
  } else if (auto* done = std::get_if<control::DriverDone>(&request.body)) {
    clients_.find(*channel)->exit_code = done->exit_code;
    answer(ControlAnswer{});
  } else {
    return false;
  }
  return true;
}

bool NodeJobs::serve_file(const control::FetchFile& request, ControlAnswerer& answer) {
  if (is_content_hash(request.hash)) {
    auto shared = std::make_shared<ControlAnswerer>(std::move(answer));
    files_.read(request.hash, request.offset, [shared](Result<std::string> part) {
      part.ok() ? (*shared)(ControlAnswer{*std::move(part)}) : (*shared)(part.status());
    });
    return true;
  }
  if (!request.hash.starts_with("job/")) return false;
  auto part = fetcher_.read_list(request.hash, request.offset);
  part.ok() ? answer(ControlAnswer{std::move(*part)}) : answer(part.status());
  return true;
}

Status NodeJobs::check_queue(const control::QueueJob& request) const {
  if (request.argv.empty() || request.argv[0].empty()) return invalid_argument("no command to run");
  if (request.job.is_none() || request.place.is_none())
    return invalid_argument("a job that is to wait for a place needs an id, and so does its place");
  if (request.resources.empty())
    return invalid_argument("a job that is to wait for a place reserves something");
  if (is_here(request.job))
    return invalid_argument("job " + request.job.short_hex() + " is here already");
  if (Status status = callbacks_.refuse("jobs"); !status.ok()) return status;
  return submitted_.check_room();
}

Status NodeJobs::check_submit(const control::SubmitJob& request) const {
  if (request.argv.empty() || request.argv[0].empty()) return invalid_argument("no command to run");
  if (request.job.is_none() != request.place.is_none())
    return invalid_argument("a job that was queued is submitted with its place");
  if (Status status = callbacks_.refuse("jobs"); !status.ok()) return status;
  if (Status status = check_environment(request.env); !status.ok()) return status;
  return submitted_.check_room();
}

Status NodeJobs::check_user(const std::string& user) const {
  // Only root's nodes have jobs of several users. Their own user could end them anyway.
  if (::geteuid() != 0 || user == user_name(0)) return {};
  std::size_t count = queue_.count_of(user) + submitted_.count_of(user);
  // Those of other machines run as that one.
  if (!user.empty() && user == options_.job_user) count += queue_.count_of("");
  if (count < options_.user_jobs_max) return {};
  return resource_exhausted((user.empty() ? "users of other machines have " : user + " has ") +
                            std::to_string(count) +
                            " jobs on this node that run or wait, as many as a user may have "
                            "(starling start --user-jobs)");
}

JobInfo NodeJobs::describe(JobId job, GroupId place, const std::vector<std::string>& argv) const {
  JobInfo info;
  info.job = job;
  info.node = options_.node;
  info.command = command_text(argv);
  info.submitted = true;
  info.started_ms = unix_milliseconds();
  info.place = place;
  return info;
}

void NodeJobs::queue(const Channel& channel, control::QueueJob request,
                     std::chrono::milliseconds patience, ControlAnswerer answer) {
  if (Status status = check_queue(request); !status.ok()) return answer(status);
  JobInfo info = describe(request.job, request.place, request.argv);
  const std::optional<uid_t> user = callbacks_.user_of(channel);
  info.user = user ? user_name(*user) : "";
  if (Status status = check_user(user ? info.user : options_.job_user); !status.ok())
    return answer(status);
  queue_.add(std::move(info), channel, std::move(request), patience, std::move(answer));
}

void NodeJobs::submit(const std::shared_ptr<Channel>& channel, control::SubmitJob request,
                      ControlAnswerer answer) {
  if (Status status = check_submit(request); !status.ok()) return answer(status);
  auto user =
      choose_job_user(callbacks_.user_of(*channel), channel->peer().address, options_.job_user);
  if (!user.ok()) return answer(user.status());
  JobInfo info =
      describe(request.job.is_none() ? JobId::random() : request.job, request.place, request.argv);
  info.user = user_name(*user ? (*user)->uid : ::geteuid());
  if (!queue_.waits_for(info.job, info.place)) {
    if (is_here(info.job))
      return answer(invalid_argument("job " + info.job.short_hex() + " was submitted already"));
    if (Status status = check_user(info.user); !status.ok()) return answer(status);
  }
  queue_.remove(info.job);
  submitted_.start(std::move(info), std::move(request), *std::move(user), channel,
                   std::move(answer));
}

Status NodeJobs::cancel(JobId job, const std::string& reason) {
  if (submitted_.contains(job)) return submitted_.cancel(job, reason);
  if (queue_.contains(job)) {
    queue_.drop(job, JobOutcome::kStopped, reason);
    return {};
  }
  if (drivers_.stop(job, reason) || ends_.jobs().contains(job)) return {};
  return not_found("no job " + job.short_hex() + " runs on this node");
}

// -- Events

void NodeJobs::end(const control::EndJob& end) {
  if (end.files_needed) return;
  fetcher_.forget(end.job);
  files_.release(end.job);
}

void NodeJobs::on_closed(const ClientTable::Client& client) {
  const Channel& channel = *client.channel;
  if (client.is_driver_of_a_job()) drivers_.on_closed(client);
  submitted_.on_submitter_closed(channel);
  queue_.on_submitter_closed(channel);
  files_.forget(channel.serial());
}

void NodeJobs::warn() {
  for (const JobId& job : submitted_.running()) {
    LOG(info, "job {}: SIGTERM, since this node is about to leave", job.short_hex());
    (void)submitted_.cancel(job, "its node is about to leave");
  }
  drivers_.warn();
}

// -- What there is

bool NodeJobs::is_of(JobId job, const Channel& channel) const {
  const std::optional<uid_t> uid = callbacks_.user_of(channel);
  if (!uid) return false;
  const std::string user = user_name(*uid);
  const JobInfo* runs = submitted_.find(job);
  return runs ? runs->user == user : queue_.is_of(job, user);
}

std::vector<JobId> NodeJobs::all() const {
  std::set<JobId> known = ends_.jobs();
  submitted_.list(known);
  queue_.list(known);
  clients_.for_each([&](const ClientTable::Client& client) {
    if (client.is_driver_of_a_job()) known.insert(client.job);
  });
  return {known.begin(), known.end()};
}

bool NodeJobs::is_here(JobId job) const {
  const std::vector<JobId> here = all();
  return std::find(here.begin(), here.end(), job) != here.end();
}

void NodeJobs::find_folder(JobId job, const control::StartActor& start, Deadline deadline,
                           std::function<void(Result<std::string>)> found) {
  const bool is_brought = start.driver_node != options_.runner.node_address &&
                          JobFetcher::is_shipped(job, start.driver.working_dir);
  if (!is_brought) return found(start.driver.working_dir);
  // The node that has it may be gone: then what outlives its job starts without.
  if (start.driver_node.empty()) return found(std::string());
  fetcher_.find(job, start.driver_node, deadline, std::move(found));
}

}  // namespace runtime
