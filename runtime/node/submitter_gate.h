// What a node does for callers that have a submitter's token.
#pragma once

#include <functional>

#include "runtime/control/control.h"

namespace runtime {

/// Whether a job was submitted by the caller in question.
using OwnsJob = std::function<bool(JobId)>;

/// Submitting jobs, stopping one's own, and looking at the cluster's state; nothing that runs code
/// as the node's user or shows what others' programs say.
/// Errors: kInvalidArgument, saying what such a token is for.
Status check_submitter(const ControlRequest& request, const OwnsJob& owns_job);

}  // namespace runtime
