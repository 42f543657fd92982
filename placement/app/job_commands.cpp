#include "placement/app/command.h"

#include <memory>

#include "placement/app/cli_jobs.h"
#include "placement/app/cli_logs.h"
#include "placement/app/cli_submit.h"

namespace placement {

Command add_submit(CLI::App& app) {
  auto options = std::make_shared<SubmitOptions>();
  CLI::App* command = add_cluster_command(
      app, "submit",
      "Run a program on the cluster: starling submit -- ./driver arguments. Its output "
      "comes here, and its exit code.",
      options->address);
  command->add_option("--working-dir", options->working_dir,
                      "a folder to ship to the node: the program runs in a copy of it, without "
                      "what its .starlingignore names. Default: where it is run, if the node is on "
                      "this machine, else an empty folder");
  command->add_flag("--detach", options->detach,
                    "print the job's id and leave it running: starling job status|logs|stop ID");
  command->add_option("--env", options->env, "KEY=VALUE for its environment; may be repeated")
      ->allow_extra_args(false);
  add_amounts(
      *command, options->amounts,
      {.cpus = "CPUs that the program itself takes: it waits for a node that has them, and runs "
               "there. Default: it reserves nothing, and runs on the node that was asked",
       .gpus = "GPUs that the program itself takes",
       .resources = "further resources that it takes, as JSON, like '{\"x\": 1}'"});
  command
      ->add_option(
          "--label", options->labels,
          "KEY=VALUE that the node has to have, by the selectors that actors use; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--place-timeout", options->place_timeout,
                      "how long it may wait for a node, like 10m (default: as long as it takes)");
  command->add_option("command", options->command, "the program and its arguments, behind --");
  command->positionals_at_end();
  return {command, [options] { return submit_command(*options); }};
}

Command add_logs(CLI::App& app) {
  struct Options {
    std::string address;
    std::string what;
    bool follow = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = add_cluster_command(
      app, "logs", "Print the log of the node, or of an actor, a job or another node",
      options->address);
  command->add_option("what", options->what,
                      "id (its first digits are enough), or an actor's name");
  command->add_flag("-f,--follow", options->follow, "print new lines as they are written");
  return {command,
          [options] { return logs_command(options->address, options->what, options->follow); }};
}

Command add_job(CLI::App& app) {
  struct Options {
    std::string address, id;
    bool json = false, follow = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* job = app.add_subcommand("job", "List jobs, ask about one, read its log, stop it")
                      ->require_subcommand(1);
  const auto one = [&](const char* name, const char* help) {
    CLI::App* command = add_cluster_command(*job, name, help, options->address);
    command->add_option("id", options->id, "the job's id, or its first digits")->required();
    return command;
  };
  CLI::App* list =
      add_cluster_command(*job, "list", "List jobs, the last ended ones too", options->address);
  list->add_flag("--json", options->json, "as a JSON array");
  CLI::App* status =
      one("status", "How a job is, or ended; with the last lines of its log if it failed");
  status->add_flag("--json", options->json, "as a JSON object");
  CLI::App* logs = one("logs", "Print what a job has written");
  logs->add_flag("-f,--follow", options->follow, "print new lines until it ends");
  one("stop", "End a job: SIGTERM to its processes, SIGKILL after 5 s; its actors end with it");
  return {job, [options, list, status, logs] {
            if (*list) return job_list_command(options->address, options->json);
            if (*status) return job_status_command(options->address, options->id, options->json);
            if (*logs) return job_logs_command(options->address, options->id, options->follow);
            return job_stop_command(options->address, options->id);
          }};
}

}  // namespace placement
