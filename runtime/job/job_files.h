// JobFiles: the files of submitted jobs. A node has a cache of files by their content, and for each
// job a copy of its folder, until that is needed no more. The disk's work is done by its own
// thread.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "runtime/control/control.h"
#include "runtime/core/lifetime.h"
#include "runtime/core/result.h"
#include "runtime/process/file_cache.h"
#include "runtime/process/job_user.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/work_thread.h"

namespace runtime {

struct JobFilesOptions {
  std::filesystem::path cache;
  std::filesystem::path folders;  // of this node's jobs; goes with the node
  std::uint64_t job_bytes_max = 1ull << 30;
  std::size_t job_files_max = 100'000;
  std::uint64_t cache_bytes_max = FileCacheOptions{}.bytes_max;
  std::filesystem::path programs = {};  // another cache, which gives way when the disk is full
  std::uint64_t queued_bytes_max = 256ull << 20;
  /// What all folders of a user's jobs were made of, for users other than the node's. A quarter of
  /// what the disk has for such folders is the limit if it is less.
  std::uint64_t user_bytes_max = 10ull << 30;
};

/// A job's folder once it is there.
struct JobFolder {
  std::filesystem::path work;     // where it runs
  std::filesystem::path program;  // empty: none was shipped next to it
};

/// Lives on the event loop; callbacks run there.
class JobFiles {
 public:
  JobFiles(EventLoop& loop, JobFilesOptions options);
  JobFiles(const JobFiles&) = delete;
  JobFiles& operator=(const JobFiles&) = delete;
  /// Waits for what the disk is doing. Removes all folders of jobs.
  ~JobFiles();

  /// Which of the files are missing in the cache. Errors: kResourceExhausted, with the limit.
  void offer(const control::OfferFiles& offer,
             std::function<void(Result<control::FilesWanted>)> done);
  /// A part of a file. Errors: kInvalidArgument (it does not fit what came before, or the content
  /// is not that of the hash), kResourceExhausted.
  void store(std::uint64_t sender, control::StoreFile part, std::function<void(Status)> done);
  /// Up to 4 MiB of a file in the cache from an offset. Errors: kNotFound.
  void read(const std::string& hash, std::uint64_t offset,
            std::function<void(Result<std::string>)> done);
  /// Drops what a sender has not finished.
  void forget(std::uint64_t sender);
  /// Makes a job's folder. Errors: kInvalidArgument (a path that leads out of the folder),
  /// kNotFound (a file is not in the cache any more). kResourceExhausted: too much, for a job or
  /// for its user. Or the disk is full, named, and no unused file of the cache is left to remove.
  void unpack(JobId job, std::vector<JobFile> files, JobFile program, std::optional<JobUser> owner,
              std::function<void(Result<JobFolder>)> done);
  /// Removes it, should it be there.
  void release(JobId job);
  /// Brings the cache within its bounds, and removes what dead nodes have left in it.
  void trim();

 private:
  struct Disk;
  template <class Work, class Done>
  void on_disk(Work work, Done done);
  Status check_size(std::uint64_t bytes, std::uint64_t count) const;

  EventLoop& loop_;
  const JobFilesOptions options_;
  std::shared_ptr<Disk> disk_;
  std::set<JobId> folders_;
  WorkThread thread_;
  bool has_work_ = false;  // has had some
  std::uint64_t queued_bytes_ = 0;
  Lifetime lifetime_;
};

}  // namespace runtime
