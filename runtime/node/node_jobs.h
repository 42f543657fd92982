// NodeJobs: the jobs of a node: files, queue, programs, drivers. Serves requests about them, and
// decides what is taken.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/job/job_fetcher.h"
#include "runtime/job/job_files.h"
#include "runtime/node/ask_head.h"
#include "runtime/node/client_table.h"
#include "runtime/node/driver_jobs.h"
#include "runtime/node/end_reports.h"
#include "runtime/node/job_queue.h"
#include "runtime/node/submitted_jobs.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/handshake.h"

namespace runtime {

struct NodeJobsOptions {
  NodeId node;
  Credentials credentials;  // shown to the nodes that folders are fetched from
  std::string job_user;     // as whom jobs run that nothing proves the user of; empty: they are not
  JobFilesOptions files;
  JobRunnerOptions runner;
  std::size_t user_jobs_max = 0;       // of each user but the node's own
  std::vector<std::string> gpu_names;  // what CUDA_VISIBLE_DEVICES has for each GPU of the node
};

/// Lives on the event loop.
class NodeJobs {
 public:
  struct Callbacks {
    AskHead head;
    /// Why the node takes no more of what is named ("jobs"); ok: it does.
    std::function<Status(const std::string& what)> refuse;
    std::function<bool()> is_stopping;
    std::function<void(const DriverInfo&)> offer;        // a driver's program, to all nodes
    std::function<void(JobId, const DriverInfo&)> warm;  // workers of it
    /// What peer_user() says of the caller; the answer may be remembered.
    std::function<std::optional<uid_t>(const Channel&)> user_of;
  };

  NodeJobs(EventLoop& loop, NodeJobsOptions options, Callbacks callbacks, ClientTable& clients,
           EndReports& ends);
  NodeJobs(const NodeJobs&) = delete;
  NodeJobs& operator=(const NodeJobs&) = delete;

  /// Of a client. False: the request is about something else, and nothing was done.
  bool serve(const std::shared_ptr<Channel>& channel, ControlRequest& request,
             ControlAnswerer& answer);
  /// Of another node. False: as serve().
  bool serve_file(const control::FetchFile& request, ControlAnswerer& answer);
  /// Of the head, for one that runs, waits or has its driver on this node. Errors: kNotFound.
  Status cancel(JobId job, const std::string& reason);
  /// Of the head: the job is over, for all nodes.
  void end(const control::EndJob& end);

  void on_closed(const ClientTable::Client& client);
  /// Whether the kernel says that it is the user for whom the job runs.
  bool is_of(JobId job, const Channel& channel) const;
  /// Those that are here, or whose end is not confirmed.
  std::vector<JobId> all() const;
  std::size_t running() const { return submitted_.running().size(); }
  /// Where the workers of a driver's job are to start on this node.
  void find_folder(JobId job, const control::StartActor& start, Deadline deadline,
                   std::function<void(Result<std::string>)> found);
  /// Brings the cache of files within its bounds.
  void trim() { files_.trim(); }

  /// SIGTERM to all, since this node is about to leave.
  void warn();
  /// Ends what was submitted; `done` when the last has ended.
  void end_all(std::function<void()> done) { submitted_.end_all(std::move(done)); }

 private:
  void queue(const Channel& channel, control::QueueJob request, std::chrono::milliseconds patience,
             ControlAnswerer answer);
  void submit(const std::shared_ptr<Channel>& channel, control::SubmitJob request,
              ControlAnswerer answer);
  /// Errors: kInvalidArgument, kUnavailable, kResourceExhausted.
  Status check_queue(const control::QueueJob& request) const;
  Status check_submit(const control::SubmitJob& request) const;
  /// Whether one more of the user's may run or wait. Errors: kResourceExhausted.
  Status check_user(const std::string& user) const;
  bool is_here(JobId job) const;
  JobInfo describe(JobId job, GroupId place, const std::vector<std::string>& argv) const;

  const NodeJobsOptions options_;
  const Callbacks callbacks_;
  ClientTable& clients_;
  EndReports& ends_;
  JobFiles files_;
  JobFetcher fetcher_;
  JobQueue queue_;
  SubmittedJobs submitted_;
  DriverJobs drivers_;
};

}  // namespace runtime
