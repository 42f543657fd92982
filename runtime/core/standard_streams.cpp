#include "runtime/core/standard_streams.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace runtime {

void open_standard_streams() {
  for (int stream = 0; stream <= 2; ++stream) {
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      ::open("/dev/null",
             stream == 0 ? O_RDONLY : O_WRONLY);  // the lowest free number, which is this
  }
}

int finish_standard_output(int exit_code) {
  errno = 0;
  const bool written =
      std::cout.flush().good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written || exit_code != 0 || errno == EPIPE) return exit_code;  // the reader has seen enough
  std::fprintf(stderr, "error: writing to standard output: %s\n",
               std::strerror(errno != 0 ? errno : EIO));
  return 1;
}

}  // namespace runtime
