// starling-config: what `starling train` and the stages answer about a configuration alone. Without
// LibTorch, so that the answer is there at once.
#include "rl/check/check_command.h"
#include "runtime/core/standard_streams.h"

int main(int argc, char** argv) {
  runtime::open_standard_streams();
  return runtime::finish_standard_output(
      rl::check_command(argc - 1, argv + 1));  // argv[1] is the command, as starling was given it
}
