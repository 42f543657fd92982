#include "runtime/process/pipe.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace runtime {

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_status(errno, "making a pipe");
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

Result<SocketPair> make_socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_status(errno, "making a pair of sockets");
  return SocketPair{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace runtime
