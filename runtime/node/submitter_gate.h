// Access control for callers with a submitter's token.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runtime/control/control.h"

namespace runtime {

/// Whether the caller submitted the job.
using OwnsJob = std::function<bool(JobId)>;

/// Allows submitting jobs, stopping one's own and querying the cluster's state.
/// Errors: kInvalidArgument for any other request.
Status check_submitter(const ControlRequest& request, const OwnsJob& owns_job);

/// Removes from an answer what a submitter must not see: commands, output and places of other
/// users' jobs, output of dead actors, placement groups. `user`: the caller's, if the kernel knows.
void hide_from_submitter(ControlAnswer& answer, const std::optional<std::string>& user);

}  // namespace runtime
