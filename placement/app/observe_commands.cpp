#include "placement/app/command.h"

#include <chrono>
#include <memory>

#include "placement/app/cli_doctor.h"
#include "placement/app/cli_stack.h"
#include "placement/app/cli_timeline.h"
#include "placement/app/cli_top.h"
#include "placement/app/cli_why.h"

namespace placement {

Command add_why(CLI::App& app) {
  struct Options {
    std::string address;
    std::string what;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = add_cluster_command(
      app, "why",
      "Say what an actor or placement group waits for, with the nearest node, and what "
      "became of it; of a node what holds it",
      options->address);
  command
      ->add_option(
          "what", options->what,
          "id of an actor, placement group, node or job (its first digits are enough), or a name")
      ->required();
  return {command, [options] { return why_command(options->address, options->what); }};
}

Command add_stack(CLI::App& app) {
  struct Options {
    std::string address;
    std::string what;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = add_cluster_command(
      app, "stack", "Show what an actor runs now: the threads of its process with their stacks",
      options->address);
  command
      ->add_option("actor", options->what, "id (its first digits are enough), or an actor's name")
      ->required();
  command->add_flag("--json", options->json, "as one JSON object");
  return {command,
          [options] { return stack_command(options->address, options->what, options->json); }};
}

Command add_top(CLI::App& app) {
  struct Options : TopOptions {
    double every_seconds = 2;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = add_cluster_command(
      app, "top", "Watch the nodes and the busiest actors; q ends", options->address);
  command->add_flag("--once", options->once,
                    "print one table as text and end (also where the output is no terminal)");
  command->add_option("--every", options->every_seconds, "seconds between updates (default: 2)")
      ->check(CLI::Range(0.2, 3600.0));
  command->add_option("--rows", options->rows, "actors to show (default: what fits)")
      ->check(CLI::Range(1, 10'000));
  return {command, [options] {
            options->every =
                std::chrono::milliseconds(static_cast<long>(options->every_seconds * 1000));
            return top_command(*options);
          }};
}

Command add_timeline(CLI::App& app) {
  auto options = std::make_shared<TimelineOptions>();
  CLI::App* command = add_cluster_command(
      app, "timeline",
      "Record the calls and transfers of all nodes for a while, for ui.perfetto.dev "
      "or chrome://tracing",
      options->address);
  command->add_option("-o,--output", options->output, "the file (default: trace.json)")
      ->type_name("FILE");
  command->add_option("--seconds", options->seconds,
                      "how long (default: 5; Ctrl-C ends it earlier)");
  return {command, [options] { return timeline_command(*options); }};
}

Command add_doctor(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = add_cluster_command(
      app, "doctor",
      "Check this machine for what goes wrong later, each finding with its cure. Exit "
      "code 1: something failed",
      options->address);
  command->add_flag(
      "--cluster", options->cluster,
      "also the cluster: clocks, each pair of nodes, and an all-reduce between them all");
  command
      ->add_option("--bytes", options->bytes,
                   "sent between each pair, and reduced (default: 64MiB)")
      ->transform(is_bytes());
  command->add_flag("--json", options->json, "as one JSON object");
  return {command, [options] { return doctor_command(*options); }};
}

}  // namespace placement
