// What a node does for callers that have a submitter's token.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runtime/control/control.h"

namespace runtime {

/// Whether a job was submitted by the caller in question.
using OwnsJob = std::function<bool(JobId)>;

/// Submitting jobs, stopping one's own, and looking at the cluster's state; nothing that runs code
/// as the node's user or shows what others' programs say.
/// Errors: kInvalidArgument, saying what such a token is for.
Status check_submitter(const ControlRequest& request, const OwnsJob& owns_job);

/// Takes out of an answer what a submitter is not told: of jobs of other users than `user` what
/// they run, what they printed and where they wait; what actors printed before they died; placement
/// groups. `user`: nothing if the kernel does not say.
void hide_from_submitter(ControlAnswer& answer, const std::optional<std::string>& user);

}  // namespace runtime
