#include "placement/app/rl_program.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <vector>

#include "runtime/process/spawn.h"

namespace placement {

namespace {

constexpr std::size_t kNamesWidth = 28;  // of --help, with the space behind them

/// What is asked about a configuration alone is answered by a program that starts at once, without
/// LibTorch.
bool asks_config(int argc, const char* const* argv) {
  for (int i = 2; i < argc; ++i) {
    for (const char* flag : {"--check", "--config-schema", "--write-tables"}) {
      if (std::strcmp(argv[i], flag) == 0) return true;
    }
  }
  return false;
}

}  // namespace

std::string rl_commands_text() {
  std::string text, names;
  for (const RlCommand& command : kRlCommands) {
    names += (names.empty() ? "" : ", ") + std::string(command.name);
    if (*command.help == '\0') continue;
    names.resize(std::max(kNamesWidth, names.size() + 2), ' ');
    text += "  " + names + command.help + "\n";
    names.clear();
  }
  return text;
}

const char* rl_program_of(int argc, const char* const* argv) {
  if (argc < 2) return nullptr;
  const auto command =
      std::find_if(std::begin(kRlCommands), std::end(kRlCommands),
                   [&](const RlCommand& known) { return std::strcmp(argv[1], known.name) == 0; });
  if (command == std::end(kRlCommands)) return nullptr;
  return command->has_config && asks_config(argc, argv) ? "starling-config" : "starling-rl";
}

int run_rl_program(int argc, char** argv) {
  std::error_code error;
  const std::string program =
      (std::filesystem::read_symlink("/proc/self/exe", error).parent_path() /
       rl_program_of(argc, argv))
          .string();
  std::vector<std::string> arguments(argv, argv + argc);
  arguments[0] = program;
  const runtime::Status why = runtime::replace_program(program, arguments);
  std::fprintf(stderr, "error: %s; `starling %s` needs it next to the starling program\n",
               why.message().c_str(), argv[1]);
  return 1;
}

}  // namespace placement
