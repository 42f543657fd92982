// JobQueue: submitted jobs that wait for what they reserve.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "runtime/control/control.h"
#include "runtime/core/lifetime.h"
#include "runtime/node/ask_head.h"
#include "runtime/node/end_reports.h"
#include "runtime/transport/channel.h"

namespace runtime {

/// On the event loop. A job leaves the queue when it is submitted with its place, when it is
/// stopped, or when its submitter is gone.
class JobQueue {
 public:
  JobQueue(AskHead head, EndReports& ends) : head_(std::move(head)), ends_(ends) {}
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  /// `job` is new, and names its place. Answers with the place, or why there is none.
  void add(JobInfo job, const Channel& submitter, control::QueueJob request,
           std::chrono::milliseconds patience, ControlAnswerer answer);
  bool contains(JobId job) const { return jobs_.contains(job); }
  /// Whether it waits for that place, which its submitter alone knows.
  bool waits_for(JobId job, GroupId place) const;
  /// Whether it is this user's.
  bool is_of(JobId job, const std::string& user) const;
  /// The number of a user's jobs that wait for a place.
  std::size_t count_of(const std::string& user) const;
  void list(std::set<JobId>& to) const;
  void remove(JobId job) { jobs_.erase(job); }
  /// It will not run.
  void drop(JobId job, JobOutcome outcome, const std::string& reason);
  void on_submitter_closed(const Channel& channel);

 private:
  struct Waiting {
    const Channel* submitter;
    GroupId place;
    std::string user;        // empty: not known
    bool is_placed = false;  // on some node, where it counts from its start
  };
  void reserve(JobId job, control::QueueJob request, std::chrono::milliseconds patience,
               ControlAnswerer answer);

  const AskHead head_;
  EndReports& ends_;
  std::map<JobId, Waiting> jobs_;
  Lifetime lifetime_;
};

}  // namespace runtime
