#include "placement/app/rl_program.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/process/spawn.h"

namespace placement {

namespace {

// Those of them that have a configuration.
constexpr const char* kTrainings[] = {"train", "sft", "dpo", "kto", "rm"};

/// What is asked about a configuration alone is answered by a program that starts at once, without
/// LibTorch.
bool asks_config(int argc, char** argv) {
  if (std::none_of(std::begin(kTrainings), std::end(kTrainings),
                   [&](const char* name) { return std::strcmp(argv[1], name) == 0; }))
    return false;
  for (int i = 2; i < argc; ++i) {
    for (const char* flag : {"--check", "--config-schema", "--write-tables"}) {
      if (std::strcmp(argv[i], flag) == 0) return true;
    }
  }
  return false;
}

}  // namespace

int run_rl_program(int argc, char** argv) {
  std::error_code error;
  const char* name = asks_config(argc, argv) ? "starling-config" : "starling-rl";
  const std::string program =
      (std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / name).string();
  std::vector<std::string> arguments(argv, argv + argc);
  arguments[0] = program;
  const runtime::Status why = runtime::replace_program(program, arguments);
  std::fprintf(stderr, "error: %s; `starling %s` needs it next to the starling program\n",
               why.message().c_str(), argv[1]);
  return 1;
}

}  // namespace placement
