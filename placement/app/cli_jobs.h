// `starling job`.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "runtime/control/membership.h"
#include "runtime/core/result.h"

namespace placement {

int job_list_command(const std::string& address, bool json);
/// Prints the job's state, and the tail of its output if it did not succeed.
int job_status_command(const std::string& address, const std::string& what, bool json);
int job_logs_command(const std::string& address, const std::string& what, bool follow);
/// Returns once the job has ended.
int job_stop_command(const std::string& address, const std::string& what);

/// The job whose id begins with `what`. Errors: kNotFound offers the nearest ids; kInvalidArgument:
/// several do.
runtime::Result<runtime::JobInfo> find_job(const runtime::ClusterState& state,
                                           const std::string& what);
/// What `submit` exits with: the command's exit code, 128 + N after signal N; nothing while it
/// runs, and when it is unknown.
std::optional<int> exit_code_of(const runtime::JobInfo& job);
nlohmann::ordered_json to_json(const runtime::JobInfo& job, const runtime::ClusterState& state);
void print_row(const runtime::JobInfo& job, const runtime::ClusterState& state);
void print_jobs(const runtime::ClusterState& state, bool with_ended);

}  // namespace placement
