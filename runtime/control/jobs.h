// Jobs: programs that use the cluster, and the files that come with those that are submitted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/process/death_cause.h"

namespace runtime {

/// How a job ended.
enum class JobOutcome : std::uint16_t { kNone = 0, kSucceeded = 1, kFailed = 2, kStopped = 3 };

/// The ended ones are remembered, up to a number.
struct JobInfo {
  static constexpr std::size_t kCommandBytesMax = 4096;  // longer ones are cut

  JobId job;
  NodeId node;  // where its driver runs
  std::string command;
  std::int32_t pid = 0;  // 0: not started yet
  bool running = true;   // or about to
  bool submitted =
      false;         // by `starling submit`: the node started it; else its driver was simply run
  std::string user;  // whom it runs as; empty: not known
  std::uint64_t started_ms = 0;  // Unix time
  std::uint64_t ended_ms = 0;
  JobOutcome outcome = JobOutcome::kNone;  // unless it is running
  DeathCause end;  // with the tail of its output, when that is not what was hoped for
  GroupId place =
      {};  // the placement group of what it reserves, of one bundle; none: it reserves nothing
  bool operator==(const JobInfo&) const = default;
};

/// "pending", "running", "succeeded", "failed", "stopped".
std::string_view job_state(const JobInfo& job);

/// Something in a submitted job's folder.
struct JobFile {
  enum class Kind : std::uint16_t { kFile = 0, kFolder = 1, kLink = 2 };
  std::string path;  // within the folder, by '/'
  Kind kind = Kind::kFile;
  bool executable = false;
  std::uint64_t bytes = 0;
  std::string hash;    // of a file: BLAKE2b-256 in hex
  std::string target;  // of a link
  bool operator==(const JobFile&) const = default;
};

}  // namespace runtime
