#include "placement/app/rl_program.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>

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
  const char* beside = asks_config(argc, argv) ? "starling-config" : "starling-rl";
  std::string program =
      (std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / beside).string();
  std::string name = program;
  argv[0] = name.data();
  ::execv(program.c_str(), argv);
  std::fprintf(stderr, "error: %s: %s; `starling %s` needs it beside the starling program\n",
               program.c_str(), std::strerror(errno), argv[1]);
  return 1;
}

}  // namespace placement
