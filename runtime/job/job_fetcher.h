// JobFetcher: the folder of a job that was submitted to another node, for its actors on this one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/core/lifetime.h"
#include "runtime/job/job_files.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/handshake.h"

namespace runtime {

/// Lives on the event loop.
class JobFetcher {
 public:
  using Found = std::function<void(Result<std::string>)>;

  JobFetcher(EventLoop& loop, Credentials credentials, JobFiles& files);
  JobFetcher(const JobFetcher&) = delete;
  JobFetcher& operator=(const JobFetcher&) = delete;
  ~JobFetcher();

  /// This node has the folder itself, and gives it to others.
  void offer(JobId job, std::vector<JobFile> files);
  /// Whether a driver of the job that works in `working_dir` is in the folder that it was shipped
  /// with.
  static bool is_shipped(JobId job, const std::string& working_dir);
  /// Brings the folder here, once, from the node at `from`. Errors: kUnavailable (that node is
  /// gone), kNotFound (it has the folder no more), those of the disk.
  void find(JobId job, const std::string& from, Deadline deadline, Found found);
  void forget(JobId job);

  /// Serves another node: a part of the list of a job's files, under folder_name(job). Empty at its
  /// end.
  Result<std::string> read_list(const std::string& name, std::uint64_t offset) const;
  static std::string folder_name(JobId job) { return "job/" + job.hex(); }

 private:
  struct Fetch;
  struct Known {
    std::string list;    // encoded; of an offered folder
    std::string folder;  // once it is here
    std::vector<Found> waiting;
    bool is_over = false;  // it was to be forgotten while it was in transit
  };

  void read(const std::shared_ptr<Fetch>& fetch, const std::string& name, std::uint64_t offset,
            std::function<void(std::string)> done);
  void read_list_on(const std::shared_ptr<Fetch>& fetch);
  void fetch_files(const std::shared_ptr<Fetch>& fetch);
  void fetch_file(const std::shared_ptr<Fetch>& fetch);
  void finish(const std::shared_ptr<Fetch>& fetch, Result<std::string> folder);

  EventLoop& loop_;
  const Credentials credentials_;
  JobFiles& files_;
  std::map<JobId, Known> known_;
  Lifetime lifetime_;
};

}  // namespace runtime
