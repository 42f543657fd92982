// starling-config: what `starling train` and the stages answer about a configuration alone. Without
// LibTorch, so that the answer is there at once.
#include <unistd.h>

#include <cstring>
#include <iostream>

#include "rl/app/check/check_command.h"
#include "runtime/core/printable_stream.h"
#include "runtime/core/standard_streams.h"

namespace {

constexpr const char* kUsage =
    "usage: starling-config COMMAND --check ...    what `starling COMMAND --check ...` says\n"
    "  COMMAND              one with a configuration: train, sft, dpo, ...\n"
    "`starling-config COMMAND --help` lists the options\n";

bool is_help(const char* word) {
  return std::strcmp(word, "--help") == 0 || std::strcmp(word, "-h") == 0;
}

}  // namespace

int main(int argc, char** argv) {
  runtime::open_standard_streams();
  const runtime::PrintableStream out(std::cout, STDOUT_FILENO);
  const runtime::PrintableStream err(std::cerr, STDERR_FILENO);
  if (argc < 2 || is_help(argv[1])) {
    (argc < 2 ? std::cerr : std::cout) << kUsage;
    return argc < 2 ? 2 : runtime::finish_standard_output(0);
  }
  return runtime::finish_standard_output(
      rl::check_command(argc - 1, argv + 1));  // argv[1] is the command, as starling was given it
}
