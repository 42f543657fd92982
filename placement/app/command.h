// Commands of the program `starling`: what their options are, and what they do.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "placement/app/cli_amounts.h"

namespace placement {

/// One command. `run` returns the program's exit code, once the options have been read; they are
/// kept by it.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
};

/// A command that asks the cluster at `address`.
CLI::App* add_cluster_command(CLI::App& app, const char* name, const char* help,
                              std::string& address);
/// What --num-cpus, --num-gpus and --resources say.
struct AmountsHelp {
  const char* cpus;
  const char* gpus;
  const char* resources;
};
/// Adds the options of the three amounts.
void add_amounts(CLI::App& command, CliAmounts& amounts, const AmountsHelp& help);
/// "4GiB", "500MB" or a plain number.
CLI::Validator is_bytes();
/// Of options that are a file or a command: what a script's unset variable has made of them is no
/// wish to go without.
CLI::Validator is_not_empty();

Command add_start(CLI::App& app);
Command add_head(CLI::App& app);
Command add_stop(CLI::App& app);
Command add_status(CLI::App& app);
Command add_list(CLI::App& app);
Command add_submit(CLI::App& app);
Command add_logs(CLI::App& app);
Command add_why(CLI::App& app);
Command add_job(CLI::App& app);
Command add_drain(CLI::App& app);
Command add_autoscaler(CLI::App& app);
Command add_metrics(CLI::App& app);
Command add_token(CLI::App& app);
Command add_stack(CLI::App& app);
Command add_top(CLI::App& app);
Command add_timeline(CLI::App& app);
Command add_doctor(CLI::App& app);

}  // namespace placement
