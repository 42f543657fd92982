#include "runtime/node/driver_jobs.h"

#include <unistd.h>

#include <csignal>
#include <optional>
#include <utility>

#include "runtime/control/control_channel.h"
#include "runtime/core/log.h"
#include "runtime/core/simulation.h"
#include "runtime/core/timer.h"
#include "runtime/node/job_record.h"
#include "runtime/process/job_user.h"

namespace runtime {

namespace {

// Between SIGTERM and SIGKILL for a driver that was not started by its node.
constexpr auto kDriverGrace = std::chrono::milliseconds(5000);
// What a process that has ended wrote to its socket is read by then.
constexpr auto kLastWords = std::chrono::milliseconds(200);

/// The kernel has told who it is, and its pid means that process here. There is none of a PID
/// namespace that is not seen from this one, and a signal to 0 goes to the node's own group.
bool is_here(const PeerInfo& peer) { return peer.uid.has_value() && peer.pid > 0; }

}  // namespace

DriverJobs::DriverJobs(EventLoop& loop, DriverJobsOptions options, Callbacks callbacks,
                       ClientTable& clients, EndReports& ends)
    : loop_(loop),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      clients_(clients),
      ends_(ends) {}

Status DriverJobs::check(const Channel& channel, JobId wanted) const {
  if (channel.peer().role != Role::kDriver)
    return invalid_argument("only a driver registers itself as one");
  if (!clients_.find(channel)->job.is_none())
    return invalid_argument("this driver is registered already");
  if (Status status = callbacks_.runs(wanted) ? Status() : callbacks_.refuse(); !status.ok())
    return status;
  const std::optional<uid_t> user = peer_user(channel.peer(), options_.address);
  if (::geteuid() == 0 && user && *user != 0) {
    return invalid_argument("this node runs as root, and so would the workers of a driver of " +
                            user_name(*user) + "; start your own node");
  }
  if (::geteuid() == 0 && !user && !channel.peer().address.starts_with("unix:")) {
    LOG(warn, "the workers of a driver at {} run as root, as this node does",
        channel.peer().address);
  }
  return {};
}

// A submitted program's driver goes by the job it was submitted as; a second one of it is another
// job.
JobInfo DriverJobs::describe(const Channel& channel, JobId wanted, const DriverInfo& driver) const {
  const JobInfo* submitted = callbacks_.submitted(wanted);
  if (submitted && !clients_.driver_of(wanted)) return *submitted;
  const std::optional<uid_t> user = peer_user(channel.peer(), options_.address);
  JobInfo info;
  info.job = JobId::random();
  info.node = options_.node;
  info.command = command_text(driver.argv);
  info.pid = channel.peer().pid;
  info.user = user ? user_name(*user) : "";
  info.started_ms = unix_milliseconds();
  return info;
}

void DriverJobs::add(const std::shared_ptr<Channel>& channel, JobId wanted, DriverInfo driver,
                     ControlAnswerer answer) {
  if (Status status = check(*channel, wanted); !status.ok()) return answer(status);
  const JobInfo info = describe(*channel, wanted, driver);
  const JobId job = info.job;
  callbacks_.offer(driver);
  clients_.find(*channel)->job = job;
  watch(*channel);
  callbacks_.head(
      ControlRequest{job, kJobHeadTimeout, control::StartJob{info, driver}},
      [this, alive = lifetime_.alive(), job, driver, weak = std::weak_ptr<Channel>(channel),
       answer = std::move(answer)](Result<ControlAnswer> started) mutable {
        auto peer = weak.lock();
        if (started.ok() && *alive && peer && !peer->closed()) callbacks_.warm(job, driver);
        if (started.ok())
          answer(ControlAnswer{job});
        else
          answer(started.status());
      });
}

// A child that the driver forked may keep its socket open.
void DriverJobs::watch(Channel& channel) {
  const PeerInfo& peer = channel.peer();
  if (!is_here(peer)) return;
  auto watch =
      ProcessWatch::start(loop_, peer.pid, lifetime_.guard([this, weak = channel.weak_from_this()] {
        auto last_words = std::make_shared<Timer>(loop_.context(), kLastWords);
        last_words->async_wait(lifetime_.guard([last_words, weak](boost::system::error_code ec) {
          auto closed = weak.lock();
          if (!ec && closed)
            closed->close(
                unavailable("the driver's process has ended; a child that it forked has "
                            "its connection still"));
        }));
      }));
  if (watch.ok())
    clients_.find(channel)->process = *std::move(watch);
  else
    LOG(warn, "the end of driver {} is seen by its socket alone: {}", peer.pid,
        watch.status().message());
}

void DriverJobs::on_closed(const ClientTable::Client& driver) {
  const JobId job = driver.job;
  const std::int32_t pid = driver.channel->peer().pid;
  LOG(info, "job {}: its driver (pid {}) is gone", job.short_hex(), pid);
  if (callbacks_.submitted(job)) {
    control::EndJob end;
    end.job = job;
    end.goes_on = true;
    return ends_.tell(std::move(end), job);
  }
  if (ends_.jobs().contains(job)) return;  // it was submitted, and its process has ended
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
  ends_.job_ended(job, outcome, cause);
}

bool DriverJobs::stop(JobId job, const std::string& reason) {
  ClientTable::Client* driver = clients_.driver_of(job);
  if (!driver) return false;
  driver->stop_reason = reason;
  send_event(*driver->channel,
             control::Shutdown{cancelled("job " + job.short_hex() + ": " + reason)});
  const PeerInfo& peer = driver->channel->peer();
  if (is_here(peer)) ::kill(peer.pid, SIGTERM);
  force_later(driver->channel);
  return true;
}

void DriverJobs::force_later(const std::shared_ptr<Channel>& channel) {
  const bool here = is_here(channel->peer());
  auto timer = std::make_shared<Timer>(loop_.context());
  timer->expires_after(here ? kDriverGrace : std::chrono::milliseconds(500));
  timer->async_wait(
      [timer, here, weak = std::weak_ptr<Channel>(channel)](boost::system::error_code ec) {
        auto open = weak.lock();
        if (ec || !open || open->closed()) return;
        if (here)
          ::kill(open->peer().pid, SIGKILL);  // its socket is open: the number is still its own
        else
          open->close(cancelled("its job was stopped"));
      });
}

void DriverJobs::warn() const {
  if (simulation()) return;  // its drivers are no processes of the machine's
  clients_.for_each([&](const ClientTable::Client& client) {
    const PeerInfo& peer = client.channel->peer();
    if (!client.is_driver_of_a_job() || callbacks_.runs(client.job) || peer.pid <= 0 ||
        !client.channel->is_unix())
      return;
    LOG(info, "job {}: SIGTERM to its driver (pid {}), since this node is about to leave",
        client.job.short_hex(), peer.pid);
    ::kill(peer.pid, SIGTERM);
  });
}

}  // namespace runtime
