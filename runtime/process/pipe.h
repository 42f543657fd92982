// Pipes and socket pairs between this process and a child.
#pragma once

#include "runtime/core/result.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

/// Both ends close on exec.
struct Pipe {
  FileDescriptor read, write;
};
/// Errors: kResourceExhausted, no descriptor is left.
Result<Pipe> make_pipe();

/// Two connected stream sockets, closed on exec.
struct SocketPair {
  FileDescriptor ours, theirs;
};
/// Errors: as make_pipe().
Result<SocketPair> make_socket_pair();

}  // namespace runtime
