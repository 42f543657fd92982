// The environment variables by which a node tells the processes it starts who they are.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/core/result.h"

namespace runtime {

/// How a worker ends that found no room to begin in: no thread, no descriptor. Its node tries
/// again.
inline constexpr int kNoRoomExitCode = 75;  // EX_TEMPFAIL of sysexits.h

/// What a worker process is told. Paths are on this machine.
struct WorkerEnvironment {
  WorkerId worker;          // STARLING_WORKER
  NodeId node;              // STARLING_NODE
  ClusterId cluster;        // STARLING_CLUSTER
  JobId job;                // STARLING_JOB
  std::string session_dir;  // STARLING_SESSION_DIR: of the node; its socket is node.sock in it, the
                            // token is in token next to it
  std::string node_address;  // STARLING_NODE_ADDRESS: HOST:PORT

  /// Where the worker listens for calls from this node's processes.
  std::string socket_path() const;
};

/// Whether this process was started by a node to run actors: then it must never act as a driver.
bool is_worker_process();
/// Errors: kInvalidArgument naming the variable that is missing or malformed.
Result<WorkerEnvironment> read_worker_environment();
/// "NAME=value" lines to start a worker with.
std::vector<std::string> worker_variables(const WorkerEnvironment& environment);

}  // namespace runtime
