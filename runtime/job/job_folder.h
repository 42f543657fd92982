// The submitter's side of a job's files: what is in its folder, and what is left out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/control/jobs.h"
#include "runtime/core/result.h"

namespace runtime {

/// A job's files as they lie here. Hashes are filled in by hash_files().
struct JobFolderScan {
  std::vector<JobFile> files;
  std::vector<std::filesystem::path> sources;  // of each
  std::uint64_t bytes = 0;
};

/// Looks through a folder, without `.git` and what `.starlingignore` in it or in a folder within it
/// leaves out. Links within it stay links; what a link out of it leads to is taken along. Errors:
/// kNotFound, kInvalidArgument: a socket, pipe or device, a loop of links, what cannot be read;
/// each names it and what helps.
Result<JobFolderScan> scan_job_folder(const std::filesystem::path& folder);

/// The files' hashes. Errors: what cannot be read.
Status hash_files(JobFolderScan& scan);

/// "data/a.bin (1.2 GiB), ..." of the largest ones.
std::string largest_files(const JobFolderScan& scan, std::size_t count);
/// "1.2 GiB".
std::string size_text(std::uint64_t bytes);

}  // namespace runtime
