// Starting child processes: the one place of the project that forks and executes programs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/result.h"
#include "runtime/process/child_setup.h"
#include "runtime/process/job_user.h"
#include "runtime/process/spawned_process.h"

namespace runtime {

/// A program to run in a child process.
struct SpawnSpec {
  std::string program;                                  // a path, or a name to look up in PATH
  std::vector<std::string> argv;                        // argv[0] first
  std::optional<std::vector<std::string>> environment;  // all of it, "NAME=value"; none: this
                                                        // process's
  std::string working_dir;                              // empty: this process's
  std::optional<JobUser> user;                          // whom to become; only root can
  bool supervised = false;  // a supervisor stands between (supervisor.h): all that the program
                            // starts ends with it, or with this process. The group is its own
  bool restores_descriptor_limit = false;  // undoes raise_descriptor_limit()
  ChildSetup setup;
};

/// Starts the program and returns when it is executed. Any thread: a death signal comes at the end
/// of the calling one. Memory is not copied but for a child with another user or a supervisor, so
/// that a process of many gigabytes starts one at once. Errors name the program. kNotFound and
/// kInvalidArgument: it cannot be executed (or the folder not entered, the user not become).
/// kResourceExhausted: too many processes or descriptors.
Result<SpawnedProcess> spawn_process(const SpawnSpec& spec);

/// A copy of this process that runs `body` and exits with its result, without destructors of
/// static objects. Call it before any thread is started. Errors: kResourceExhausted.
Result<SpawnedProcess> fork_process(const ChildSetup& setup, const std::function<int()>& body);

/// Executes a program in this process, in place of the one that runs. Returns only if it cannot:
/// kNotFound and kInvalidArgument name it. `program` is a path.
Status replace_program(const std::string& program, const std::vector<std::string>& argv);

}  // namespace runtime
