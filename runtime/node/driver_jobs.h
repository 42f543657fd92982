// DriverJobs: the drivers on a node, each of which is a job: run by a user, or by a job that was
// submitted.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/control/control.h"
#include "runtime/core/lifetime.h"
#include "runtime/node/ask_head.h"
#include "runtime/node/client_table.h"
#include "runtime/node/end_reports.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

struct DriverJobsOptions {
  NodeId node;
  std::string address;  // HOST:PORT of the node
};

/// Lives on the event loop.
class DriverJobs {
 public:
  struct Callbacks {
    AskHead head;
    std::function<Status()> refuse;                  // why the node takes no driver; ok: it does
    std::function<const JobInfo*(JobId)> submitted;  // a job that runs here; null: there is none
    std::function<bool(JobId)> runs;                 // the process of a submitted job
    std::function<void(const DriverInfo&)> offer;    // its program, to all nodes
    std::function<void(JobId, const DriverInfo&)> warm;  // workers of its program
  };

  DriverJobs(EventLoop& loop, DriverJobsOptions options, Callbacks callbacks, ClientTable& clients,
             EndReports& ends);
  DriverJobs(const DriverJobs&) = delete;
  DriverJobs& operator=(const DriverJobs&) = delete;

  /// `wanted`: the job that its program was submitted as; none: it was not. Answers with its job.
  void add(const std::shared_ptr<Channel>& channel, JobId wanted, DriverInfo driver,
           ControlAnswerer answer);
  /// Its connection has ended: so has its job, unless that was submitted.
  void on_closed(const ClientTable::Client& driver);
  /// Has the driver of a job end, by force after a while. False: it has none here.
  bool stop(JobId job, const std::string& reason);
  /// SIGTERM to those of this machine that no submitted job has started.
  void warn() const;

 private:
  Status check(const Channel& channel, JobId wanted) const;
  JobInfo describe(const Channel& channel, JobId wanted, const DriverInfo& driver) const;
  void watch(Channel& channel);
  /// A driver that lets go of its connection by the end of a grace is not forced.
  void force_later(const std::shared_ptr<Channel>& channel);

  EventLoop& loop_;
  const DriverJobsOptions options_;
  const Callbacks callbacks_;
  ClientTable& clients_;
  EndReports& ends_;
  Lifetime lifetime_;
};

}  // namespace runtime
