// A process that continues in a child, and keeps what is orphaned below it until it can end that.
#pragma once

namespace runtime {

/// Returns in a new child of the calling process, which itself never returns. It adopts orphans
/// below (PR_SET_CHILD_SUBREAPER), ignores signals that ask it to end, and lets go of its output
/// and of `connection`. When the child has ended it kills what is left, and ends as the child did.
/// Where the system refuses, it returns in the calling process, and orphans are not kept.
/// Call it before any thread is started. Needs the C library alone: small programs compile it in.
void continue_in_child(int connection);

}  // namespace runtime
