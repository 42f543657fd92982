// The process's limit of open descriptors (ulimit -n).
#pragma once

namespace runtime {

/// Raises the soft limit to the hard one. For processes of Starling's own: programs that use
/// select() have no room for descriptors above 1023.
void raise_descriptor_limit();
/// For a child between fork() and exec(): the soft limit as it was before raise_descriptor_limit().
/// Async-signal-safe.
void restore_descriptor_limit();

}  // namespace runtime
