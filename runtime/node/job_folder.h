// The submitter's side of a job's files: what is in its folder, and what is left out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/control/jobs.h"
#include "runtime/core/result.h"

namespace runtime {

/// What a folder's `.starlingignore` leaves out. A value. Lines are patterns as in .gitignore: `*`,
/// `?`, `[a-z]`; with a '/' in front or within from the folder itself, else at any depth; '/' at
/// the end: folders only; `!` takes back what an earlier line left out; `#` begins a comment.
/// `.git` is always left out.
class IgnoreRules {
 public:
  IgnoreRules() = default;
  explicit IgnoreRules(const std::string& text);
  bool ignores(const std::string& path, bool is_folder) const;

 private:
  struct Rule {
    std::string pattern;
    bool takes_back = false;
    bool anchored = false;
    bool folders_only = false;
  };
  std::vector<Rule> rules_;
};

/// A job's files as they lie here. Hashes are filled in by hash_files().
struct JobFolderScan {
  std::vector<JobFile> files;
  std::vector<std::filesystem::path> sources;  // of each
  std::uint64_t bytes = 0;
};

/// Looks through a folder. Links within it stay links; what a link out of it leads to is taken
/// along. Errors: kNotFound, kInvalidArgument: a socket, pipe or device, a loop of links, what
/// cannot be read; each names it and what helps.
Result<JobFolderScan> scan_job_folder(const std::filesystem::path& folder);

/// The files' hashes. Errors: what cannot be read.
Status hash_files(JobFolderScan& scan);

/// "data/a.bin (1.2 GiB), ..." of the largest ones.
std::string largest_files(const JobFolderScan& scan, std::size_t count);
/// "1.2 GiB".
std::string size_text(std::uint64_t bytes);

}  // namespace runtime
