#include "placement/app/command.h"

#include <memory>

#include "placement/app/cli_drain.h"
#include "placement/app/cli_head.h"
#include "placement/app/cli_list.h"
#include "placement/app/cli_metrics.h"
#include "placement/app/cli_status.h"
#include "placement/app/cli_stop.h"
#include "placement/app/cli_token.h"
#include "placement/placement.h"

namespace placement {

Command add_head(CLI::App& app) {
  auto options = std::make_shared<HeadCommandOptions>();
  CLI::App* command =
      app.add_subcommand("head", "The head's process, which `start --head` runs by itself.")
          ->group("");
  command->add_option("--cluster", options->cluster);
  command->add_option("--node", options->node);
  command->add_option("--socket", options->socket);
  command->add_option("--journal", options->journal);
  command->add_flag("--durable", options->durable);
  command->add_flag("--again", options->again);
  return {command, [options] {
            return head_command(*options, [] { return std::make_unique<ClusterScheduler>(); });
          }};
}

Command add_stop(CLI::App& app) {
  struct Options {
    std::string address;
    bool force = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = add_cluster_command(
      app, "stop", "Stop a cluster's nodes on this machine, or the one node that --address names",
      options->address);
  command->add_flag("--force", options->force, "also while jobs run, which end then");
  return {command, [options] { return stop_command(options->address, options->force); }};
}

Command add_status(CLI::App& app) {
  struct Options {
    std::string address;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      add_cluster_command(app, "status", "Show nodes, jobs and actors", options->address);
  command->add_flag("--json", options->json, "as one JSON object");
  return {command, [options] { return status_command(options->address, options->json); }};
}

Command add_list(CLI::App& app) {
  auto options = std::make_shared<ListOptions>();
  CLI::App* command =
      add_cluster_command(app, "list", "List one kind of thing, ended ones too", options->address);
  command
      ->add_option("kind", options->kind,
                   "nodes, actors, workers, jobs, placement-groups or objects (from 64 KiB: "
                   "size, place, owner, and what keeps them)")
      ->required();
  command->add_option("--filter", options->filters,
                      "FIELD=VALUE, with the fields that --json shows (labels.NAME=VALUE); of ids "
                      "the first digits are enough (repeatable: all must hold)");
  command->add_option("--state", options->state, "short for --filter state=STATE");
  command->add_option("--limit", options->limit, "maximum number of actors (default: all)")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1'000'000'000}));
  command->add_option("--after", options->after,
                      "an actor's id: list the actors after it, in the order of ids");
  command->add_flag("--json", options->json,
                    "as a JSON array; objects: an object with the nodes' stores with them");
  return {command, [options] { return list_command(*options); }};
}

Command add_drain(CLI::App& app) {
  auto options = std::make_shared<DrainOptions>();
  CLI::App* command = add_cluster_command(
      app, "drain",
      "Have a node leave the cluster. It gets nothing new; actors that may be restarted and "
      "objects move to other nodes. It leaves when it is empty, or at the deadline",
      options->address);
  command
      ->add_option("node", options->node,
                   "id (its first digits are enough), HOST:PORT or host name")
      ->required();
  command->add_option("--deadline", options->deadline,
                      "time after which it leaves in any case, like 30s or 2min (default: 30s)");
  command->add_option(
      "--reason", options->reason,
      "the reason that actors, `starling status` and the logs show, like preemption");
  command->add_flag("--wait", options->wait,
                    "return when the node has left, rather than when the cluster has recorded it");
  return {command, [options] { return drain_command(*options); }};
}

Command add_metrics(CLI::App& app) {
  struct Options {
    std::string address;
    bool key = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = add_cluster_command(
      app, "metrics", "Print a node's metrics, as Prometheus reads them at http://NODE/metrics",
      options->address);
  command->add_flag("--key", options->key,
                    "print what a scraper has to show there (Authorization: Bearer KEY)");
  return {command, [options] { return metrics_command(options->address, options->key); }};
}

Command add_token(CLI::App& app) {
  auto options = std::make_shared<TokenCommandOptions>();
  CLI::App* command = add_cluster_command(
      app, "token", "Print the cluster's token, for STARLING_TOKEN_FILE on another machine",
      options->address);
  auto* submitter = command->add_flag(
      "--submitter", options->submitter,
      "print a token that lets its holder submit jobs to a node of root, as its own "
      "user, and nothing else");
  auto* change = command->add_flag(
      "--new", options->change,
      "give the cluster another token while it runs, of 256 random bits, and print it");
  change->excludes(submitter);
  command->add_option("--from", options->file, "the file with the new token")->needs(change);
  command
      ->add_option("--grace", options->grace,
                   "how long the present token counts still, like 5s or 2h (default: 10min; 5s "
                   "at least)")
      ->needs(change);
  return {command, [options] { return token_command(*options); }};
}

}  // namespace placement
