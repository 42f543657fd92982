// Sends a job's files to the node where it is to run.
#pragma once

#include <optional>
#include <string>

#include "runtime/control/job_client.h"

namespace runtime {

/// Fills in a request's files, program and folder, and brings the node's cache what it lacks.
/// Blocks; not from a handler.
///
/// A working folder is shipped, to run in the copy. Without one, a node on this machine runs the
/// command in the present folder, and another node in an empty one. The program is shipped next to
/// it if the command names a file that is neither in the folder nor the system's. Errors:
/// kNotFound, kInvalidArgument (see scan_job_folder), kResourceExhausted (names the largest files),
/// those of the connection.
Status ship_files(EventLoop& loop, NodeClient& client,
                  const std::optional<std::string>& working_dir, bool node_is_here,
                  JobRequest& request);

/// Whether ship_files() could send them, as far as the node at `client` can say. It is for a job
/// that first waits for its place, which may be on another node. Errors: as there.
Status check_files(EventLoop& loop, NodeClient& client,
                   const std::optional<std::string>& working_dir, const std::string& command);

}  // namespace runtime
