// starling-config: what `starling train` and the stages answer about a configuration alone. Without LibTorch, so that the answer is there at once.
#include "rl/check/check_command.h"

int main(int argc, char** argv) {
  return rl::check_command(argc - 1, argv + 1);  // argv[1] is the command, as starling was given it
}
