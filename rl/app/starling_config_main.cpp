// starling-config: what `starling train` and the stages answer about a configuration alone. Without
// LibTorch, so that the answer is there at once.
#include <unistd.h>

#include <iostream>

#include "rl/app/check/check_command.h"
#include "runtime/core/printable_stream.h"
#include "runtime/core/standard_streams.h"

int main(int argc, char** argv) {
  runtime::open_standard_streams();
  const runtime::PrintableStream out(std::cout, STDOUT_FILENO);
  const runtime::PrintableStream err(std::cerr, STDERR_FILENO);
  return runtime::finish_standard_output(
      rl::check_command(argc - 1, argv + 1));  // argv[1] is the command, as starling was given it
}
