// starling: the command-line program. It runs nodes and asks them; what needs tensors is
// starling-rl, found next to it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "placement/app/command.h"
#include "placement/app/rl_program.h"
#include "placement/app/usage_mistake.h"
#include "runtime/core/asio.h"
#include "runtime/core/printable_text.h"
#include "runtime/core/standard_streams.h"
#include "runtime/core/version.h"
#include "runtime/core/whole_arguments.h"

namespace {

/// Adds the commands in the order of --help.
std::vector<placement::Command> add_commands(CLI::App& app) {
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("starling ") + runtime::kRelease);
  std::vector<placement::Command> commands;
  for (auto add :
       {placement::add_start, placement::add_head, placement::add_stop, placement::add_status,
        placement::add_list, placement::add_submit, placement::add_logs, placement::add_why,
        placement::add_job, placement::add_drain, placement::add_autoscaler, placement::add_metrics,
        placement::add_token, placement::add_stack, placement::add_top, placement::add_timeline,
        placement::add_doctor})
    commands.push_back(add(app));
  // The commands would inherit it.
  app.footer(
      "Reinforcement learning (each has its own --help):\n" + placement::rl_commands_text() +
      "\nA cluster is found by --address, then STARLING_ADDRESS, then the last `starling start` of "
      "this user.");
  return commands;
}

}  // namespace

int main(int argc, char** argv) {
  runtime::open_standard_streams();
  if (placement::rl_program_of(argc, argv) != nullptr) return placement::run_rl_program(argc, argv);
  CLI::App app("Starling: actors, objects and reinforcement learning on a cluster", "starling");
  const std::vector<placement::Command> commands = add_commands(app);
  try {
    runtime::parse_whole_arguments(app, argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0)
      return runtime::finish_standard_output(app.exit(error));  // --help
    std::string command;
    for (const CLI::App* at = &placement::named_command(app); at->get_parent();
         at = at->get_parent())
      command = " " + at->get_name() + command;
    const std::string mistake = placement::usage_mistake(app, error);
    std::fprintf(stderr, "error: %s; see starling%s --help\n",
                 runtime::printable_text(mistake).c_str(), command.c_str());
    return 2;
  }
  const auto chosen =
      std::find_if(commands.begin(), commands.end(),
                   [](const placement::Command& command) { return command.app->parsed(); });
  // A library may throw where the system refuses it what it cannot do without.
  try {
    return runtime::finish_standard_output(chosen->run());
  } catch (const boost::system::system_error& refused) {
    const runtime::Status status = runtime::from_asio(refused.code(), chosen->app->get_name());
    std::fprintf(stderr, "error: %s\n", runtime::printable_text(status.to_string()).c_str());
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "error: %s\n", runtime::printable_text(failure.what()).c_str());
  }
  return 1;
}
