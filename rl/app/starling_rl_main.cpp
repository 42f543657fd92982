// starling-rl: the program that links LibTorch. `starling` runs it for the commands below; the
// cluster runs it for their workers.
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <span>
#include <string_view>

#include "rl/actor/sft_actor.h"
#include "rl/app/all_reduce.h"
#include "rl/app/commands.h"
#include "rl/comm/all_reduce_probe.h"
#include "rl/rl.h"
#include "runtime/core/log.h"
#include "runtime/core/printable_stream.h"
#include "runtime/core/standard_streams.h"
#include "runtime/runtime.h"

namespace {

void print_usage(std::ostream& out) {
  out << "usage: starling-rl COMMAND ...\ncommands: train";
  for (const rl::TrainingCommand& training : std::span(rl::kTrainingCommands).subspan(1))
    out << ", " << training.name;
  for (const rl::ToolCommand& tool : rl::kToolCommands) out << ", " << tool.name;
  out << "\n`starling COMMAND --help` explains each\n";
}

}  // namespace

int main(int argc, char** argv) {
  runtime::open_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is like a full disk: an error of the write,
                                  // which training outlives
  runtime::Runtime runtime(argc, argv);
  rl::register_training_actors(runtime);
  rl::register_stage_actors(runtime);
  rl::register_all_reduce_probe(runtime);
  if (runtime.is_worker()) return runtime.run([](runtime::Runtime&) { return 0; });
  const runtime::PrintableStream out(std::cout, STDOUT_FILENO);
  const runtime::PrintableStream err(std::cerr, STDERR_FILENO);
  const std::string_view name = argc < 2 ? "" : argv[1];
  if (name == "--help" || name == "-h") return print_usage(std::cout), 0;
  for (const rl::ToolCommand& tool : rl::kToolCommands) {
    if (name != tool.name) continue;
    runtime::start_log(tool.name);
    return runtime::finish_standard_output(tool.run(argc - 1, argv + 1));
  }
  if (name == "all-reduce")
    return rl::all_reduce_command(runtime, argc - 1, argv + 1);  // for starling doctor
  for (const rl::TrainingCommand& training : rl::kTrainingCommands) {
    if (name != training.name) continue;
    runtime::start_log("driver");
    return runtime::finish_standard_output(training.run(runtime, argc - 1, argv + 1));
  }
  if (!name.empty()) std::cerr << "error: no command '" << name << "'\n";
  print_usage(std::cerr);
  return 2;
}
