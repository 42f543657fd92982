// The node's part in jobs: those that are submitted to it, and the drivers that are simply run.
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "runtime/control/control_channel.h"
#include "runtime/core/log.h"
#include "runtime/core/timer.h"
#include "runtime/node/gpus.h"
#include "runtime/node/job_user.h"
#include "runtime/node/node.h"

namespace runtime {

namespace {

constexpr auto kJobHeadTimeout = std::chrono::milliseconds(10000);
// Between SIGTERM and SIGKILL for a driver that was not started by its node.
constexpr auto kDriverGrace = std::chrono::milliseconds(5000);
// What a process that has ended wrote to its socket is read by then.
constexpr auto kLastWords = std::chrono::milliseconds(200);
constexpr std::size_t kEnvironmentBytesMax = 1 << 20;

std::string command_line(const std::vector<std::string>& argv) {
  std::string text;
  for (const std::string& word : argv) {
    text += (text.empty() ? "" : " ") + word;
    if (text.size() > JobInfo::kCommandBytesMax)
      return text.substr(0, JobInfo::kCommandBytesMax - 3) + "...";
  }
  return text;
}

DeathCause cause_of(std::string text) {
  DeathCause cause;
  cause.text = std::move(text);
  return cause;
}

Status check_environment(const Environment& env) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : env) {
    if (name.empty() || name.find('=') != std::string::npos ||
        (name + value).find('\0') != std::string::npos)
      return invalid_argument("'" + name + "' is no name of a variable");
    bytes += name.size() + value.size();
  }
  if (bytes > kEnvironmentBytesMax)
    return invalid_argument("the job's environment has " + std::to_string(bytes) +
                            " bytes; at most " + std::to_string(kEnvironmentBytesMax) +
                            " are taken");
  return {};
}

}  // namespace

struct Node::Submission {
  JobInfo info;
  control::SubmitJob body;
  std::optional<JobUser> user;
  std::vector<std::uint32_t> gpus;  // of this node's, by number, that are the job's
  std::shared_ptr<Channel> channel;
  ControlAnswerer answer;
  std::string stop_reason;  // not empty: it was told to end before it ran
};

// Whether the kernel says that it is the user for whom the job runs.
bool Node::is_job_of(JobId job, const PeerInfo& peer) const {
  const std::optional<uid_t> uid = peer_user(peer, address_);
  if (!uid) return false;
  const std::string user = user_name(*uid);
  if (const auto runs = submitted_.find(job); runs != submitted_.end())
    return runs->second.user == user;
  const auto waits = queued_.find(job);
  return waits != queued_.end() && waits->second.user == user;
}

bool Node::serve_job(const std::shared_ptr<Channel>& channel, ControlRequest& request,
                     ControlAnswerer& answer) {
  if (auto* body = std::get_if<control::SubmitJob>(&request.body)) {
    submit(channel, std::move(*body), std::move(answer));
  } else if (auto* queue = std::get_if<control::QueueJob>(&request.body)) {
    queue_job(channel, std::move(*queue), request.timeout, std::move(answer));
  } else if (auto* cancel = std::get_if<control::CancelJob>(&request.body);
             cancel && (jobs_->runs(cancel->job) || submissions_.contains(cancel->job) ||
                        queued_.contains(cancel->job))) {
    // Without the head, which may be away.
    Status status = cancel_job(cancel->job, "stopped on request");
    status.ok() ? answer(ControlAnswer{}) : answer(status);
  } else if (auto* offer = std::get_if<control::OfferFiles>(&request.body)) {
    auto shared = std::make_shared<ControlAnswerer>(std::move(answer));
    job_files_->offer(*offer, [shared](Result<control::FilesWanted> wanted) {
      wanted.ok() ? (*shared)(ControlAnswer{*std::move(wanted)}) : (*shared)(wanted.status());
    });
  } else if (auto* part = std::get_if<control::StoreFile>(&request.body)) {
    auto shared = std::make_shared<ControlAnswerer>(std::move(answer));
    job_files_->store(channel->serial(), std::move(*part), [shared](Status status) {
      status.ok() ? (*shared)(ControlAnswer{}) : (*shared)(std::move(status));
    });
  } else if (auto* driver = std::get_if<control::DriverDone>(&request.body)) {
    clients_[channel.get()].exit_code = driver->exit_code;
    answer(ControlAnswer{});
  } else {
    return false;
  }
  return true;
}

// -- Jobs that wait for what they reserve

void Node::queue_job(const std::shared_ptr<Channel>& channel, control::QueueJob body,
                     std::chrono::milliseconds patience, ControlAnswerer answer) {
  if (body.argv.empty() || body.argv[0].empty())
    return answer(invalid_argument("no command to run"));
  if (body.job.is_none() || body.place.is_none())
    return answer(
        invalid_argument("a job that is to wait for a place needs an id, and so does its place"));
  if (body.resources.empty())
    return answer(invalid_argument("a job that is to wait for a place reserves something"));
  std::vector<JobId> here;
  list_jobs(here);
  if (std::find(here.begin(), here.end(), body.job) != here.end())
    return answer(invalid_argument("job " + body.job.short_hex() + " is here already"));
  if (Status status = refuse_while_drained("jobs"); !status.ok()) return answer(status);
  if (Status status = jobs_->check_room(); !status.ok()) return answer(status);
  JobInfo info;
  info.job = body.job;
  info.node = options_.node;
  info.command = command_line(body.argv);
  info.submitted = true;
  const std::optional<uid_t> user = peer_user(channel->peer(), address_);
  info.user = user ? user_name(*user) : "";
  info.started_ms = unix_milliseconds();
  info.place = body.place;
  queued_[info.job] = {channel.get(), body.place, info.user};
  auto shared = std::make_shared<ControlAnswerer>(std::move(answer));
  to_head(ControlRequest{info.job, kJobHeadTimeout, control::StartJob{info, {}}},
          [this, alive = alive_, shared, patience,
           body = std::move(body)](Result<ControlAnswer> known) mutable {
            if (!*alive) return;
            if (known.status().code() == ErrorCode::kInvalidArgument) {
              queued_.erase(body.job);  // it is another's: not ours to end
              return (*shared)(known.status().with_context("the head"));
            }
            if (!known.ok()) {
              drop_queued(body.job, JobOutcome::kStopped, known.status().message());
              return (*shared)(known.status().with_context("the head"));
            }
            control::CreateGroup place;
            place.spec.group = body.place;
            place.spec.bundles = {std::move(body.resources)};
            if (!body.labels.empty()) place.spec.bundle_labels = {std::move(body.labels)};
            to_head(ControlRequest{body.job, patience, std::move(place)},
                    [this, alive = std::move(alive), shared,
                     job = body.job](Result<ControlAnswer> placed) {
                      const bool was_stopped = placed.status().code() == ErrorCode::kCancelled;
                      if (*alive && !placed.ok())
                        drop_queued(job, was_stopped ? JobOutcome::kStopped : JobOutcome::kFailed,
                                    placed.status().message());
                      (*shared)(std::move(placed));
                    });
          });
}

void Node::on_submitter_closed(const Channel& channel) {
  std::vector<JobId> waiting;
  for (const auto& [job, queued] : queued_) {
    if (queued.submitter == &channel) waiting.push_back(job);
  }
  for (JobId job : waiting)
    drop_queued(job, JobOutcome::kStopped, "whoever submitted it was gone before it began");
}

void Node::drop_queued(JobId job, JobOutcome outcome, const std::string& reason) {
  if (queued_.erase(job) > 0) on_job_ended(job, outcome, cause_of(reason));
}

// -- Submitted jobs

void Node::submit(const std::shared_ptr<Channel>& channel, control::SubmitJob body,
                  ControlAnswerer answer) {
  auto submission = std::make_shared<Submission>();
  if (body.argv.empty() || body.argv[0].empty())
    return answer(invalid_argument("no command to run"));
  if (body.job.is_none() != body.place.is_none())
    return answer(invalid_argument("a job that was queued is submitted with its place"));
  if (Status status = refuse_while_drained("jobs"); !status.ok()) return answer(status);
  if (Status status = check_environment(body.env); !status.ok()) return answer(status);
  if (Status status = jobs_->check_room(); !status.ok()) return answer(status);
  auto user = choose_job_user(channel->peer(), address_, options_.job_user);
  if (!user.ok()) return answer(user.status());
  submission->user = *std::move(user);
  JobInfo& info = submission->info;
  info.job = body.job.is_none() ? JobId::random() : body.job;
  info.place = body.place;
  std::vector<JobId> here;
  list_jobs(here);
  const auto queued = queued_.find(info.job);
  const bool is_queued = queued != queued_.end() && queued->second.place == info.place;
  if (!is_queued && std::find(here.begin(), here.end(), info.job) != here.end())
    return answer(invalid_argument("job " + info.job.short_hex() + " was submitted already"));
  queued_.erase(info.job);
  info.node = options_.node;
  info.command = command_line(body.argv);
  info.submitted = true;
  info.user = user_name(submission->user ? submission->user->uid : ::geteuid());
  info.started_ms = unix_milliseconds();
  submission->body = std::move(body);
  submission->channel = channel;
  submission->answer = std::move(answer);
  submissions_[info.job] = submission;
  // First the record: what runs is known, whatever happens next.
  to_head(ControlRequest{info.job, kJobHeadTimeout, control::StartJob{info, {}}},
          [this, alive = alive_, submission](Result<ControlAnswer> known) {
            if (!*alive) return;
            if (known.status().code() == ErrorCode::kInvalidArgument) {
              submissions_.erase(submission->info.job);  // it is another's: not ours to end
              return submission->answer(known.status().with_context("the head"));
            }
            if (!known.ok())
              return submission_failed(submission, JobOutcome::kFailed,
                                       known.status().with_context("the head"));
            submission->info.place.is_none() ? prepare(submission) : find_gpus(submission);
          });
}

void Node::find_gpus(const std::shared_ptr<Submission>& submission) {
  control::QueryGroup query;
  query.group = submission->info.place;
  to_head(ControlRequest{submission->info.job, kJobHeadTimeout, std::move(query)},
          [this, alive = alive_, submission](Result<ControlAnswer> found) {
            if (!*alive) return;
            if (!found.ok())
              return submission_failed(submission, JobOutcome::kFailed,
                                       found.status().with_context("what it reserves"));
            const auto* place = std::get_if<GroupState>(&*found);
            if (place && place->job != submission->info.job)
              return submission_failed(submission, JobOutcome::kFailed,
                                       invalid_argument("what it reserves is another job's"));
            if (place && !place->gpus.empty()) submission->gpus = place->gpus.front();
            prepare(submission);
          });
}

void Node::prepare(const std::shared_ptr<Submission>& submission) {
  control::SubmitJob& body = submission->body;
  if (!body.working_dir.empty() && body.program.path.empty())
    return run_job(submission, JobFolder{body.working_dir, {}});
  job_files_->unpack(submission->info.job, body.files, body.program, submission->user,
                     [this, submission](Result<JobFolder> folder) {
                       if (folder.ok())
                         run_job(submission, *folder);
                       else
                         submission_failed(submission, JobOutcome::kFailed, folder.status());
                     });
}

void Node::run_job(const std::shared_ptr<Submission>& submission, const JobFolder& folder) {
  const control::SubmitJob& body = submission->body;
  if (submission->stop_reason.empty() && stopping_)
    submission->stop_reason = "its node was stopped";
  if (submission->stop_reason.empty() && !body.detached && submission->channel->closed())
    submission->stop_reason = "whoever submitted it is gone";
  if (!submission->stop_reason.empty())
    return submission_failed(submission, JobOutcome::kStopped, cancelled(submission->stop_reason));
  JobInfo& info = submission->info;
  JobStart start;
  start.job = info.job;
  start.argv = body.argv;
  start.program = folder.program.string();
  start.working_dir = body.working_dir.empty() ? folder.work.string() : body.working_dir;
  start.env = body.env;
  if (!submission->gpus.empty()) {
    for (auto& [name, value] : gpu_environment(gpu_names_, submission->gpus))
      start.env[name] = value;
  }
  start.user = submission->user;
  if (!body.detached) start.submitter = submission->channel;
  auto pid = jobs_->start(start);
  if (!pid.ok()) return submission_failed(submission, JobOutcome::kFailed, pid.status());
  submissions_.erase(info.job);
  if (body.working_dir.empty()) job_fetcher_->offer(info.job, std::move(submission->body.files));
  info.pid = *pid;
  submitted_[info.job] = info;
  tell_head(control::StartJob{info, {}}, info.job);
  submission->answer(ControlAnswer{info.job});
}

void Node::find_folder(JobId job, const control::StartActor& start, Deadline deadline,
                       std::function<void(Result<std::string>)> found) {
  const bool is_brought =
      start.driver_node != address_ && JobFetcher::is_shipped(job, start.driver.working_dir);
  if (!is_brought) return found(start.driver.working_dir);
  // The node that has it may be gone: then what outlives its job starts without.
  if (start.driver_node.empty()) return found(std::string());
  job_fetcher_->find(job, start.driver_node, deadline, std::move(found));
}

void Node::submission_failed(const std::shared_ptr<Submission>& submission, JobOutcome outcome,
                             const Status& why) {
  submissions_.erase(submission->info.job);
  on_job_ended(submission->info.job, outcome,
               cause_of((outcome == JobOutcome::kStopped ? "" : "it could not be started: ") +
                        why.message()));
  submission->answer(why);
}

void Node::on_job_ended(JobId job, JobOutcome outcome, const DeathCause& cause) {
  submitted_.erase(job);
  unconfirmed_job_ends_.insert(job);
  tell_head(control::EndJob{job, outcome, cause, unix_milliseconds(), false, false}, job,
            [this, alive = alive_, job] {
              if (*alive) unconfirmed_job_ends_.erase(job);
            });
}

Status Node::cancel_job(JobId job, const std::string& reason) {
  if (jobs_->runs(job)) return jobs_->cancel(job, reason);
  if (auto found = submissions_.find(job); found != submissions_.end()) {
    found->second->stop_reason = reason;
    return {};
  }
  if (queued_.contains(job)) {
    drop_queued(job, JobOutcome::kStopped, reason);
    return {};
  }
  Client* driver = driver_of(job);
  if (!driver)
    return unconfirmed_job_ends_.contains(job)
               ? Status()
               : not_found("no job " + job.short_hex() + " runs on this node");
  driver->stop_reason = reason;
  send_event(*driver->channel,
             control::Shutdown{cancelled("job " + job.short_hex() + ": " + reason)});
  const PeerInfo& peer = driver->channel->peer();
  const bool is_here = peer.uid.has_value();  // the kernel has told who it is, on this machine
  if (is_here) ::kill(peer.pid, SIGTERM);
  // It lets go of its connection by then, or is made to.
  auto timer = std::make_shared<Timer>(loop_.context());
  timer->expires_after(is_here ? kDriverGrace : std::chrono::milliseconds(500));
  timer->async_wait([timer, is_here,
                     weak = std::weak_ptr<Channel>(driver->channel)](boost::system::error_code ec) {
    auto channel = weak.lock();
    if (ec || !channel || channel->closed()) return;
    if (is_here)
      ::kill(channel->peer().pid, SIGKILL);  // its socket is open: the number is still its own
    else
      channel->close(cancelled("its job was stopped"));
  });
  return {};
}

// -- Drivers

void Node::register_driver(const std::shared_ptr<Channel>& channel, JobId wanted, DriverInfo driver,
                           ControlAnswerer answer) {
  if (channel->peer().role != Role::kDriver)
    return answer(invalid_argument("only a driver registers itself as one"));
  if (!clients_[channel.get()].job.is_none())
    return answer(invalid_argument("this driver is registered already"));
  if (Status status = jobs_->runs(wanted) ? Status() : refuse_while_drained("drivers");
      !status.ok())
    return answer(status);
  const std::optional<uid_t> user = peer_user(channel->peer(), address_);
  if (::geteuid() == 0 && user && *user != 0) {
    return answer(
        invalid_argument("this node runs as root, and so would the workers of a driver of " +
                         user_name(*user) + "; start a node of your own"));
  }
  if (::geteuid() == 0 && !user && !channel->peer().address.starts_with("unix:")) {
    LOG(warn, "the workers of a driver at {} run as root, as this node does",
        channel->peer().address);
  }
  // A submitted program's driver goes by the job it was submitted as; a second one beside it is a
  // job of its own.
  auto submitted = submitted_.find(wanted);
  const bool is_submitted = submitted != submitted_.end() && !driver_of(wanted);
  JobInfo info;
  if (is_submitted) {
    info = submitted->second;
  } else {
    info.job = JobId::random();
    info.node = options_.node;
    info.command = command_line(driver.argv);
    info.pid = channel->peer().pid;
    info.user = user ? user_name(*user) : "";
    info.started_ms = unix_milliseconds();
  }
  const JobId job = info.job;
  programs_->offer(driver);
  clients_[channel.get()].job = job;
  watch_driver(*channel);
  ControlRequest request{job, kJobHeadTimeout, control::StartJob{info, driver}};
  to_head(std::move(request),
          [this, alive = alive_, job, driver, weak = std::weak_ptr<Channel>(channel),
           answer = std::move(answer)](Result<ControlAnswer> started) mutable {
            auto peer = weak.lock();
            if (started.ok() && *alive && peer && !peer->closed()) workers_->warm(job, driver);
            if (started.ok())
              answer(ControlAnswer{job});
            else
              answer(started.status());
          });
}

// A child that the driver forked may keep its socket open.
void Node::watch_driver(Channel& channel) {
  const PeerInfo& peer = channel.peer();
  if (!peer.uid || peer.pid <= 0) return;  // elsewhere, or of a PID namespace not seen from here
  auto watch =
      ProcessWatch::start(loop_, peer.pid, [this, alive = alive_, weak = channel.weak_from_this()] {
        auto last_words = std::make_shared<Timer>(loop_.context(), kLastWords);
        last_words->async_wait([last_words, alive, weak](boost::system::error_code ec) {
          auto closed = weak.lock();
          if (!ec && *alive && closed)
            closed->close(
                unavailable("the driver's process has ended; a child that it forked has "
                            "its connection still"));
        });
      });
  if (watch.ok())
    clients_[&channel].process = *std::move(watch);
  else
    LOG(warn, "the end of driver {} is seen by its socket alone: {}", peer.pid,
        watch.status().message());
}

void Node::on_driver_closed(const Client& driver) {
  const JobId job = driver.job;
  const std::int32_t pid = driver.channel->peer().pid;
  LOG(info, "job {}: its driver (pid {}) is gone", job.short_hex(), pid);
  if (submitted_.contains(job)) {
    control::EndJob end;
    end.job = job;
    end.goes_on = true;
    return tell_head(std::move(end), job);
  }
  if (unconfirmed_job_ends_.contains(job)) return;  // it was submitted, and its process has ended
  DeathCause cause = cause_of("its driver is done");
  JobOutcome outcome = JobOutcome::kSucceeded;
  if (driver.exit_code) {
    cause.exit_code = *driver.exit_code;
    cause.text = "exited with code " + std::to_string(*driver.exit_code);
    if (*driver.exit_code != 0) outcome = JobOutcome::kFailed;
  } else {
    outcome = JobOutcome::kFailed;
    cause.text = "its driver (pid " + std::to_string(pid) +
                 ") was gone without a word: it was killed, or crashed";
  }
  cause.pid = pid;
  if (!driver.stop_reason.empty()) {
    outcome = JobOutcome::kStopped;
    cause.text = driver.stop_reason;
  }
  on_job_ended(job, outcome, cause);
}

void Node::list_jobs(std::vector<JobId>& jobs) const {
  std::set<JobId> known = unconfirmed_job_ends_;
  for (const auto& [job, submission] : submissions_) known.insert(job);
  for (const auto& [job, channel] : queued_) known.insert(job);
  for (const auto& [job, info] : submitted_) known.insert(job);
  for (const auto& [channel, client] : clients_) {
    if (channel->peer().role == Role::kDriver && !client.job.is_none()) known.insert(client.job);
  }
  jobs.assign(known.begin(), known.end());
}

}  // namespace runtime
