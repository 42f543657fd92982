// A job that reserves something waits here for its place, before it is submitted to the node that
// has it.
#pragma once

#include <memory>

#include "placement/app/cli_submit.h"
#include "runtime/control/node_client.h"
#include "runtime/process/session.h"

namespace placement {

struct JobPlace {
  runtime::JobId job;
  runtime::GroupId group;
  runtime::NodeId node;
  std::string address;   // of the node, HOST:PORT
  bool is_here = false;  // on this machine
};

/// Blocks until a node has what the job takes. Says on stderr what it waits for, after a second and
/// then each time that changes. The job is over if the client's connection ends before it was
/// submitted to that node. Errors: kInvalidArgument (an option, a selector), kDeadlineExceeded
/// (names the missing resource and the nearest node), kCancelled (the job was stopped), those of
/// the connection.
runtime::Result<JobPlace> wait_for_place(runtime::EventLoop& loop, runtime::NodeClient& client,
                                         const SubmitOptions& options);

/// For a job that could not be begun in its place. Blocks until the job has another place, or until
/// the old one has had time to come back. The head gives it another when its node is gone or about
/// to go. Errors: kNotFound, when the job has ended; those of the connection.
runtime::Result<JobPlace> wait_for_another_place(runtime::EventLoop& loop,
                                                 runtime::NodeClient& client,
                                                 const JobPlace& place);

/// How to reach the place's node, when it is another than the one of `asked`: by its socket if it
/// is on this machine. Blocks for a moment when it has only just joined, since a node of this
/// machine can be found after it has.
runtime::ClusterAddress address_of(const JobPlace& place, const runtime::ClusterAddress& asked);

}  // namespace placement
