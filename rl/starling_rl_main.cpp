// starling-rl: the program that links LibTorch. `starling` runs it for the commands below; the cluster runs it for their workers.
#include <cstring>
#include <iostream>

#include "rl/command/export.h"
#include "rl/command/generate.h"
#include "rl/command/render.h"
#include "rl/command/score.h"
#include "rl/command/tokenize.h"
#include "rl/command/train.h"
#include "rl/rl.h"
#include "runtime/runtime.h"

namespace {

struct Command {
  const char* name;
  int (*run)(int argc, char** argv);
};

// Tools that people debug with: they never start a cluster.
constexpr Command kTools[] = {
    {"generate", rl::generate_command},     {"score", rl::score_command},   {"tokenize", rl::tokenize_command},
    {"detokenize", rl::detokenize_command}, {"render", rl::render_command}, {"export", rl::export_command},
};

int usage() {
  std::cerr << "usage: starling-rl COMMAND ...\ncommands: train";
  for (const Command& tool : kTools) std::cerr << ", " << tool.name;
  std::cerr << "\n`starling COMMAND --help` explains each\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  runtime::Runtime runtime(argc, argv);
  rl::register_training_actors(runtime);
  if (runtime.is_worker()) return runtime.run([](runtime::Runtime&) { return 0; });
  if (argc < 2) return usage();
  for (const Command& tool : kTools) {
    if (std::strcmp(argv[1], tool.name) == 0) return tool.run(argc - 1, argv + 1);
  }
  if (std::strcmp(argv[1], "train") == 0) {
    runtime::start_log("driver");
    return rl::train_command(runtime, argc - 1, argv + 1);
  }
  return usage();
}
