#include "placement/app/command.h"

#include <memory>

#include "placement/app/cli_query.h"
#include "placement/app/cli_start.h"
#include "placement/autoscaler/command_provider.h"
#include "placement/autoscaler/config_file.h"
#include "runtime/metrics/metrics_server.h"

namespace placement {

namespace {

/// What the node stores, and how much.
void add_limits(CLI::App& command, StartOptions& options) {
  command
      .add_option("--object-store-memory", options.object_store_bytes,
                  "bytes of shared memory for objects, like 4GiB (default, and 0: 30 % of memory)")
      ->transform(is_bytes());
  command
      .add_option(
          "--journal", options.journal,
          "folder where the head records the state of the cluster. A folder that was used before "
          "continues that cluster. Default: one that survives the head's process, not the cluster")
      ->check(is_not_empty());
  command
      .add_option("--autoscaler", options.autoscaler,
                  "add and remove nodes as this YAML file says; with --head")
      ->type_name("FILE")
      ->check(is_not_empty());
  command.add_option("--spill-dir", options.spill_dir,
                     "where unread objects go while the store is full (default: in the "
                     "session folder)");
  command
      .add_option("--spill-limit", options.spill_limit,
                  "bytes there at most, like 100GiB (default: half of what the disk has left; "
                  "0: spill nothing)")
      ->transform(is_bytes());
  command.add_option("--memory-threshold", options.memory_threshold,
                     "share of the machine's or cgroup's memory in use from which on the worker "
                     "that grew most is stopped "
                     "(default: 0.95; 0: none is)");
  command
      .add_option("--log-limit", options.log_limit,
                  "bytes of logs that the node keeps, if a quarter of what the disk has is not "
                  "less (default: 2GiB). The oldest of what has ended go first")
      ->transform(is_bytes());
  command
      .add_option("--job-size-limit", options.job_size_limit,
                  "bytes of files that a submitted job may bring, like 500MiB (default: 1GiB)")
      ->transform(is_bytes());
  command.add_option("--job-user", options.job_user,
                     "for a node of root's: the user as whom jobs from other machines run "
                     "(default: they are refused)");
  const auto add_share = [&](const char* name, std::size_t& limit, const std::string& what) {
    command
        .add_option(
            name, limit,
            "for a node of root's: how many " + what + " (default: " + std::to_string(limit) + ")")
        ->check(CLI::PositiveNumber);
  };
  add_share("--user-jobs", options.users.jobs,
            "jobs of each user but root may run there or wait for their place");
  add_share("--user-connections", options.users.connections,
            "connections each user with a submitter's token may have to it");
}

/// What it is notified of from outside, and what it tells.
void add_watches(CLI::App& command, StartOptions& options) {
  command.add_option("--drain-deadline", options.drain_deadline,
                     "how long SIGTERM gives the node to move what it has to others, like 30s "
                     "(default: 30s; 0: it stops at once). A second SIGTERM stops it at once");
  command
      .add_option("--preemption-file", options.preemption_file,
                  "file whose appearance says that this machine is about to be taken away: the "
                  "node is drained then")
      ->check(is_not_empty());
  command
      .add_option("--preemption-command", options.preemption_command,
                  "command that prints 'preempted', or 'preempted 25s', when that is so")
      ->check(is_not_empty());
  command
      .add_option("--preemption-url", options.preemption_url,
                  "a cloud's metadata endpoint that says so: aws, gcp, aws+http://HOST:PORT or "
                  "gcp+http://HOST:PORT")
      ->check(is_not_empty());
  command.add_option("--preemption-poll", options.preemption_poll,
                     "how often these are asked (default: 1s)");
  command.add_option(
      "--metrics", options.metrics,
      "who may read http://NODE/metrics: key (holders of the key of `starling metrics "
      "--key`; the default), open (any client) or off");
  command
      .add_option("--tls-cert", options.tls_cert,
                  "certificate in PEM form, with its chain: other machines read the metrics at "
                  "https://NODE/metrics (without it: this machine alone, over HTTP)")
      ->type_name("FILE")
      ->check(is_not_empty());
  command.add_option("--tls-key", options.tls_key, "the certificate's private key")
      ->type_name("FILE")
      ->check(is_not_empty());
}

int run_start(StartOptions& options) {
  if (!options.autoscaler.empty()) {
    auto config = read_autoscaler_config(options.autoscaler);
    if (!config.ok()) return fail(config.status());
    if (runtime::Status checked = check_command(config->provider); !checked.ok())
      return fail(checked.with_context(options.autoscaler));
    options.autoscaler_stop = config->stop_timeout;
  }
  return start_command(options, runtime::http_metrics());
}

}  // namespace

Command add_start(CLI::App& app) {
  auto options = std::make_shared<StartOptions>();
  CLI::App* command = app.add_subcommand(
      "start",
      "Start a node in the background: with --head a new cluster, with --address as part of one. "
      "The last line of its output is the node's address.");
  command->add_flag("--head", options->head, "host the head of a new cluster");
  command->add_option("--address", options->address, "the head to join")->type_name("HOST:PORT");
  command
      ->add_option("--port", options->port,
                   "port to listen at (head: " + std::to_string(kDefaultPort) +
                       "; others, and 0: any free one)")
      ->check(CLI::Range(0, 65535));
  command->add_option(
      "--bind", options->bind,
      "address to listen at (default: loopback for a head, towards the head for others)");
  command->add_option("--advertise", options->advertise,
                      "host name or address that other machines reach this node by");
  command
      ->add_option("--alias", options->aliases,
                   "another address that this node is reached at, through a forwarded port for "
                   "instance; callers that dialled any other are refused; may be repeated")
      ->type_name("HOST[:PORT]");
  command->add_flag("--plain", options->plain,
                    "do not encrypt what other machines send to this node and get from it; for a "
                    "link that no other party can read or change");
  add_amounts(*command, options->amounts,
              {.cpus = "CPUs to offer (default: the machine's)",
               .gpus = "GPUs to offer (default: those that NVML finds)",
               .resources = "further resources as JSON, like '{\"x\": 1}'"});
  command->add_option("--label", options->labels,
                      "KEY=VALUE that says what the node is; may be repeated");
  add_limits(*command, *options);
  add_watches(*command, *options);
  command->add_flag("--block", options->block, "stay in the foreground");
  command->add_flag("--private", options->is_private,
                    "serve one program: stay in the foreground, end with the parent process, and "
                    "not become the cluster that commands find by themselves");
  return {command, [options] { return run_start(*options); }};
}

}  // namespace placement
