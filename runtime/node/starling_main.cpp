// starling: the command-line program. It runs nodes and asks them; what needs tensors is
// starling-rl, found beside it.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "placement/autoscaler/cli_autoscaler.h"
#include "placement/autoscaler/command_provider.h"
#include "placement/autoscaler/config_file.h"
#include "placement/placement.h"
#include "runtime/core/nearest.h"
#include "runtime/core/standard_streams.h"
#include "runtime/core/version.h"
#include "runtime/core/whole_arguments.h"
#include "runtime/head/cli_head.h"
#include "runtime/metrics/metrics_server.h"
#include "runtime/node/cli_doctor.h"
#include "runtime/node/cli_drain.h"
#include "runtime/node/cli_jobs.h"
#include "runtime/node/cli_list.h"
#include "runtime/node/cli_logs.h"
#include "runtime/node/cli_metrics.h"
#include "runtime/node/cli_query.h"
#include "runtime/node/cli_stack.h"
#include "runtime/node/cli_start.h"
#include "runtime/node/cli_status.h"
#include "runtime/node/cli_stop.h"
#include "runtime/node/cli_submit.h"
#include "runtime/node/cli_timeline.h"
#include "runtime/node/cli_token.h"
#include "runtime/node/cli_top.h"
#include "runtime/node/cli_why.h"

namespace {

constexpr const char* kRlCommands[] = {"train",    "sft",      "dpo",     "kto",      "rm",
                                       "pipeline", "generate", "score",   "tokenize", "detokenize",
                                       "render",   "export",   "inspect", "report",   "data",
                                       "eval",     "reward"};

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

/// Becomes starling-rl or starling-config, which answer their own --help. Returns only if that
/// fails.
int run_rl(int argc, char** argv) {
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

std::unique_ptr<runtime::Scheduler> make_scheduler() {
  return std::make_unique<placement::ClusterScheduler>();
}

/// "4GiB", "500MB" or a plain number.
CLI::Validator bytes() {
  return {[size = CLI::AsSizeValue(false)](std::string& text) {
            return text.starts_with('-') ? text + " is below 0" : size(text);
          },
          "BYTES"};
}

/// Of options that are a file or a command: what a script's unset variable has made of them is no
/// wish to go without.
CLI::Validator not_empty() {
  return {
      [](std::string& text) {
        return std::string(text.empty() ? "it is empty; leave the option out to go without" : "");
      },
      ""};
}

/// The commands' options, and which of them was chosen.
struct Commands {
  explicit Commands(CLI::App& app) {
    app.require_subcommand(1);
    app.set_version_flag("--version", std::string("starling ") + runtime::kRelease);
    add_start(app);
    add_head(app);
    add_stop(app);
    add_status(app);
    add_list(app);
    add_submit(app);
    add_logs(app);
    add_why(app);
    add_job(app);
    add_drain(app);
    add_autoscaler(app);
    add_metrics(app);
    add_token(app);
    add_stack(app);
    add_top(app);
    add_timeline(app);
    add_doctor(app);
    app.footer(
        "Reinforcement learning (each has its own --help):\n"
        "  train                       Train a policy: --config FILE key=value ...\n"
        "  sft                         Learn from demonstrations: --config FILE key=value ...\n"
        "  dpo                         Learn from pairs of a chosen and a rejected response (DPO, "
        "IPO, ORPO, SimPO, ...)\n"
        "  kto                         Learn from responses that are wanted or not\n"
        "  rm                          Train a reward model on pairs\n"
        "  pipeline                    Stages in order, each with what the ones before it made: "
        "FILE\n"
        "  generate, score             Sample from a model; log-probs of given tokens\n"
        "  eval                        How many answers of a model are right; pass@k, majority "
        "votes\n"
        "  reward                      Scores of given responses, and what was compared\n"
        "  report                      A run as one HTML page: curves, samples, timings\n"
        "  data                        Rows of data files: head, stats, convert\n"
        "  tokenize, detokenize, render  Text to ids and back; chat messages to text\n"
        "  export                      A checkpoint or GGUF file as a Hugging Face folder\n"
        "  inspect                     What a model is, what it takes, what of it is not "
        "supported\n\n"
        "A cluster is found by --address, then STARLING_ADDRESS, then the last `starling start` of "
        "this user.");
  }

  CLI::App* add(CLI::App& app, const char* name, const char* help) {
    CLI::App* command = app.add_subcommand(name, help);
    command->add_option("--address", address, "the cluster's HOST:PORT")->type_name("HOST:PORT");
    return command;
  }

  void add_start(CLI::App& app) {
    start = app.add_subcommand(
        "start",
        "Start a node in the background: with --head a new cluster, with --address as part of one. "
        "The last line of its output is the node's address.");
    start->add_flag("--head", start_options.head, "host the head of a new cluster");
    start->add_option("--address", start_options.address, "the head to join")
        ->type_name("HOST:PORT");
    start
        ->add_option("--port", start_options.port,
                     "port to listen at (head: " + std::to_string(runtime::kDefaultPort) +
                         "; others, and 0: any free one)")
        ->check(CLI::Range(0, 65535));
    start->add_option(
        "--bind", start_options.bind,
        "address to listen at (default: loopback for a head, towards the head for others)");
    start->add_option("--advertise", start_options.advertise,
                      "host name or address that other machines reach this node by");
    start
        ->add_option("--alias", start_options.aliases,
                     "another address that this node is reached at, through a forwarded port for "
                     "instance; callers that dialled any other are refused; may be repeated")
        ->type_name("HOST[:PORT]");
    start->add_flag("--plain", start_options.plain,
                    "do not encrypt what other machines send to this node and get from it; for a "
                    "link that nobody else can read or change");
    start
        ->add_option("--num-cpus,--cpus", start_options.amounts.cpus,
                     "CPUs to offer (default: the machine's)")
        ->check(CLI::Number);
    start
        ->add_option("--num-gpus,--gpus", start_options.amounts.gpus,
                     "GPUs to offer (default: those that NVML finds)")
        ->check(CLI::Number);
    start->add_option("--resources", start_options.amounts.resources,
                      "further resources as JSON, like '{\"x\": 1}'");
    start->add_option("--label", start_options.labels,
                      "KEY=VALUE that says what the node is; may be repeated");
    add_start_limits();
    add_start_watches();
    start->add_flag("--block", start_options.block, "stay in the foreground");
    start->add_flag("--private", start_options.is_private,
                    "serve one program: stay in the foreground, end with the parent process, and "
                    "not become the cluster that commands find by themselves");
  }
  /// What it stores, and how much.
  void add_start_limits() {
    start
        ->add_option(
            "--object-store-memory", start_options.object_store_bytes,
            "bytes of shared memory for objects, like 4GiB (default, and 0: 30 % of memory)")
        ->transform(bytes());
    start
        ->add_option("--journal", start_options.journal,
                     "folder where the head records what it knows; one that a cluster has used "
                     "goes on with that cluster "
                     "(default: one that survives the head's process, not the cluster)")
        ->check(not_empty());
    start
        ->add_option("--autoscaler", start_options.autoscaler,
                     "add and remove nodes as this YAML file says; with --head")
        ->type_name("FILE")
        ->check(not_empty());
    start->add_option("--spill-dir", start_options.spill_dir,
                      "where objects go that nobody reads while the store is full (default: in the "
                      "session folder)");
    start
        ->add_option("--spill-limit", start_options.spill_limit,
                     "bytes there at most, like 100GiB (default: half of what the disk has left; "
                     "0: spill nothing)")
        ->transform(bytes());
    start->add_option("--memory-threshold", start_options.memory_threshold,
                      "share of the machine's or cgroup's memory in use from which on the worker "
                      "that grew most is stopped "
                      "(default: 0.95; 0: none is)");
    start
        ->add_option(
            "--log-limit", start_options.log_limit,
            "bytes of logs that the node keeps, if a quarter of what the disk has is not less; the "
            "oldest of what has ended go first (default: 2GiB)")
        ->transform(bytes());
    start
        ->add_option("--job-size-limit", start_options.job_size_limit,
                     "bytes of files that a submitted job may bring, like 500MiB (default: 1GiB)")
        ->transform(bytes());
    start->add_option("--job-user", start_options.job_user,
                      "for a node of root's: the user as whom jobs from other machines run "
                      "(default: they are refused)");
  }
  /// What it is told of from outside, and what it tells.
  void add_start_watches() {
    start->add_option("--drain-deadline", start_options.drain_deadline,
                      "how long SIGTERM gives the node to move what it has to others, like 30s "
                      "(default: 30s; 0: it stops at once). A second SIGTERM stops it at once");
    start
        ->add_option("--preemption-file", start_options.preemption_file,
                     "file whose appearance says that this machine is about to be taken away: the "
                     "node is drained then")
        ->check(not_empty());
    start
        ->add_option("--preemption-command", start_options.preemption_command,
                     "command that prints 'preempted', or 'preempted 25s', when that is so")
        ->check(not_empty());
    start
        ->add_option("--preemption-url", start_options.preemption_url,
                     "a cloud's metadata endpoint that says so: aws, gcp, aws+http://HOST:PORT or "
                     "gcp+http://HOST:PORT")
        ->check(not_empty());
    start->add_option("--preemption-poll", start_options.preemption_poll,
                      "how often these are asked (default: 1s)");
    start->add_option("--metrics", start_options.metrics,
                      "who may read http://NODE/metrics: key (whoever shows `starling metrics "
                      "--key`; the default), open (anybody) or off");
    start
        ->add_option("--tls-cert", start_options.tls_cert,
                     "certificate in PEM form, with its chain: other machines read the metrics at "
                     "https://NODE/metrics (without it: this machine alone, over HTTP)")
        ->type_name("FILE")
        ->check(not_empty());
    start->add_option("--tls-key", start_options.tls_key, "the certificate's private key")
        ->type_name("FILE")
        ->check(not_empty());
  }
  void add_head(CLI::App& app) {
    head = app.add_subcommand("head", "The head's process, which `start --head` runs by itself.")
               ->group("");
    head->add_option("--cluster", head_options.cluster);
    head->add_option("--node", head_options.node);
    head->add_option("--socket", head_options.socket);
    head->add_option("--journal", head_options.journal);
    head->add_flag("--durable", head_options.durable);
  }
  void add_stop(CLI::App& app) {
    stop = add(app, "stop",
               "Stop a cluster's nodes on this machine, or the one node that --address names");
    stop->add_flag("--force", force_stop, "also while jobs run, which end then");
  }
  void add_status(CLI::App& app) {
    status = add(app, "status", "Show nodes, jobs and actors");
    status->add_flag("--json", json, "as one JSON object");
  }
  void add_list(CLI::App& app) {
    list = add(app, "list", "List one kind of thing, ended ones too");
    list->add_option("kind", list_options.kind,
                     "nodes, actors, workers, jobs, placement-groups or objects (from 64 KiB: "
                     "size, place, owner, and what keeps them)")
        ->required();
    list->add_option("--filter", list_options.filters,
                     "FIELD=VALUE, with the fields that --json shows (labels.NAME=VALUE); of ids "
                     "the first digits are enough; may be repeated: all must hold");
    list->add_option("--state", list_options.state, "short for --filter state=STATE");
    list->add_option("--limit", list_options.limit, "actors at most (default: all)")
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1'000'000'000}));
    list->add_option("--after", list_options.after,
                     "an actor's id: those behind it, in the order of ids");
    list->add_flag("--json", list_options.json,
                   "as a JSON array; objects: an object with the nodes' stores beside them");
  }
  void add_submit(CLI::App& app) {
    submit = add(app, "submit",
                 "Run a program on the cluster: starling submit -- ./driver arguments. Its output "
                 "comes here, and its exit code.");
    submit->add_option(
        "--working-dir", submit_options.working_dir,
        "a folder to ship to the node: the program runs in a copy of it, without what its "
        ".starlingignore names "
        "(default: where it is run, if the node is on this machine, else an empty folder)");
    submit->add_flag("--detach", submit_options.detach,
                     "print the job's id and leave it running: starling job status|logs|stop ID");
    submit->add_option("--env", submit_options.env,
                       "KEY=VALUE for its environment; may be repeated");
    submit
        ->add_option(
            "--num-cpus,--cpus", submit_options.amounts.cpus,
            "CPUs that the program itself takes: it waits for a node that has them, and runs there "
            "(default: it reserves nothing, and runs on the node that was asked)")
        ->check(CLI::Number);
    submit
        ->add_option("--num-gpus,--gpus", submit_options.amounts.gpus,
                     "GPUs that the program itself takes")
        ->check(CLI::Number);
    submit->add_option("--resources", submit_options.amounts.resources,
                       "further resources that it takes, as JSON, like '{\"x\": 1}'");
    submit->add_option(
        "--label", submit_options.labels,
        "KEY=VALUE that the node has to have, by the selectors that actors use; may be repeated");
    submit->add_option("--place-timeout", submit_options.place_timeout,
                       "how long it may wait for a node, like 10m (default: as long as it takes)");
    submit->add_option("command", submit_options.command,
                       "the program and its arguments, behind --");
    submit->positionals_at_end();
  }
  void add_logs(CLI::App& app) {
    logs = add(app, "logs", "Print the log of the node, or of an actor, a job or another node");
    logs->add_option("what", what, "id (its first digits are enough), or an actor's name");
    logs->add_flag("-f,--follow", follow, "go on as it grows");
  }

  void add_why(CLI::App& app) {
    why = add(app, "why",
              "Say what an actor or placement group waits for, with the nearest node, and what "
              "became of it; of a node what holds it");
    why->add_option(
           "what", what,
           "id of an actor, placement group, node or job (its first digits are enough), or a name")
        ->required();
  }

  void add_job(CLI::App& app) {
    job = app.add_subcommand("job", "List jobs, ask about one, read its log, stop it")
              ->require_subcommand(1);
    const auto one = [this](const char* name, const char* help) {
      CLI::App* command = add(*job, name, help);
      command->add_option("id", what, "the job's id, or its first digits")->required();
      return command;
    };
    job_list = add(*job, "list", "List jobs, the last ended ones too");
    job_list->add_flag("--json", json, "as a JSON array");
    job_status =
        one("status", "How a job is, or ended; with the last lines of its log if it failed");
    job_status->add_flag("--json", json, "as a JSON object");
    job_logs = one("logs", "Print what a job has written");
    job_logs->add_flag("-f,--follow", follow, "go on until it ends");
    job_stop = one(
        "stop", "End a job: SIGTERM to its processes, SIGKILL after 5 s; its actors end with it");
  }

  void add_drain(CLI::App& app) {
    drain = add(app, "drain",
                "Have a node leave the cluster: it gets nothing new, actors that may be restarted "
                "and objects move to other nodes, and it "
                "leaves when it is empty, or at the deadline");
    drain
        ->add_option("node", drain_options.node,
                     "id (its first digits are enough), HOST:PORT or host name")
        ->required();
    drain->add_option("--deadline", drain_options.deadline,
                      "when it leaves at the latest, like 30s or 2min (default: 30s)");
    drain->add_option("--reason", drain_options.reason,
                      "what actors, `starling status` and the logs say, like preemption");
    drain->add_flag("--wait", drain_options.wait,
                    "return when the node has left, rather than when the cluster has recorded it");
  }

  void add_metrics(CLI::App& app) {
    metrics = add(app, "metrics",
                  "Print a node's metrics, as Prometheus reads them at http://NODE/metrics");
    metrics->add_flag("--key", key,
                      "print what a scraper has to show there (Authorization: Bearer KEY)");
  }
  void add_token(CLI::App& app) {
    token =
        add(app, "token", "Print the cluster's token, for STARLING_TOKEN_FILE on another machine");
    auto* submitter = token->add_flag(
        "--submitter", token_options.submitter,
        "print a token that lets its holder submit jobs to a node of root, as its own "
        "user, and nothing else");
    auto* change = token->add_flag(
        "--new", token_options.change,
        "give the cluster another token while it runs, of 256 random bits, and print it");
    change->excludes(submitter);
    token->add_option("--from", token_options.file, "the file with the new token")->needs(change);
    token
        ->add_option("--grace", token_options.grace,
                     "how long the present token counts still, like 5s or 2h (default: 10min; 5s "
                     "at least)")
        ->needs(change);
  }
  void add_stack(CLI::App& app) {
    stack = add(app, "stack",
                "Show what an actor runs now: the threads of its process with their stacks");
    stack->add_option("actor", what, "id (its first digits are enough), or an actor's name")
        ->required();
    stack->add_flag("--json", json, "as one JSON object");
  }

  void add_top(CLI::App& app) {
    top = add(app, "top", "Watch the nodes and the busiest actors; q ends");
    top->add_flag("--once", top_options.once,
                  "one look, as text (also where the output is no terminal)");
    top->add_option("--every", every_seconds, "seconds between looks (default: 2)")
        ->check(CLI::Range(0.2, 3600.0));
    top->add_option("--rows", top_options.rows, "actors to show (default: what fits)")
        ->check(CLI::Range(1, 10'000));
  }
  void add_timeline(CLI::App& app) {
    timeline = add(app, "timeline",
                   "Record the calls and transfers of all nodes for a while, for ui.perfetto.dev "
                   "or chrome://tracing");
    timeline->add_option("-o,--output", timeline_options.output, "the file (default: trace.json)")
        ->type_name("FILE");
    timeline->add_option("--seconds", timeline_options.seconds,
                         "how long (default: 5; Ctrl-C ends it earlier)");
  }
  void add_doctor(CLI::App& app) {
    doctor = add(app, "doctor",
                 "Check this machine for what goes wrong later, each finding with its cure. Exit "
                 "code 1: something failed");
    doctor->add_flag(
        "--cluster", doctor_options.cluster,
        "also the cluster: clocks, each pair of nodes, and an all-reduce between them all");
    doctor
        ->add_option("--bytes", doctor_options.bytes,
                     "sent between each pair, and reduced (default: 64MiB)")
        ->transform(bytes());
    doctor->add_flag("--json", doctor_options.json, "as one JSON object");
  }

  void add_autoscaler(CLI::App& app) {
    autoscaler = app.add_subcommand("autoscaler",
                                    "What adds and removes nodes (`start --head --autoscaler FILE` "
                                    "runs it): how it is, or whether its file is right");
    autoscaler->require_subcommand(1);
    autoscaler_status = add(*autoscaler, "status", "Show what it wants and why");
    autoscaler_status->add_flag("--json", json, "as one JSON object");
    autoscaler_check = autoscaler->add_subcommand(
        "check", "Check a configuration, and that the provider's command can be run");
    autoscaler_check->add_option("file", what, "YAML file")->required();
    autoscaler_run =
        autoscaler
            ->add_subcommand(
                "run", "The autoscaler's process, which the node beside the head runs by itself.")
            ->group("");
    autoscaler_run->add_option("--config", autoscaler_options.config);
    autoscaler_run->add_option("--address", autoscaler_options.address);
    autoscaler_run->add_option("--left", autoscaler_options.left);
  }

  int run_autoscaler() {
    if (*autoscaler_status) return placement::autoscaler_status_command(address, json);
    if (*autoscaler_check) return placement::autoscaler_check_command(what);
    return placement::autoscaler_run_command(autoscaler_options);
  }

  int run_start() {
    if (!start_options.autoscaler.empty()) {
      auto config = placement::read_autoscaler_config(start_options.autoscaler);
      if (!config.ok()) return runtime::fail(config.status());
      if (runtime::Status checked = placement::check_command(config->provider); !checked.ok())
        return runtime::fail(checked.with_context(start_options.autoscaler));
      start_options.autoscaler_stop = config->stop_timeout;
    }
    return runtime::start_command(start_options, runtime::http_metrics());
  }

  int run() {
    if (*start) return run_start();
    if (*autoscaler) return run_autoscaler();
    if (*head) return runtime::head_command(head_options, make_scheduler);
    if (*stop) return runtime::stop_command(address, force_stop);
    if (*status) return runtime::status_command(address, json);
    if (*why) return runtime::why_command(address, what);
    if (*drain) {
      drain_options.address = address;
      return runtime::drain_command(drain_options);
    }
    if (*list) {
      list_options.address = address;
      return runtime::list_command(list_options);
    }
    if (*top) {
      top_options.address = address;
      top_options.every = std::chrono::milliseconds(static_cast<long>(every_seconds * 1000));
      return runtime::top_command(top_options);
    }
    if (*timeline) {
      timeline_options.address = address;
      return runtime::timeline_command(timeline_options);
    }
    if (*doctor) {
      doctor_options.address = address;
      return runtime::doctor_command(doctor_options);
    }
    if (*token) {
      token_options.address = address;
      return runtime::token_command(token_options);
    }
    if (*metrics) return runtime::metrics_command(address, key);
    if (*stack) return runtime::stack_command(address, what, json);
    if (*logs) return runtime::logs_command(address, what, follow);
    if (*job) {
      if (*job_list) return runtime::job_list_command(address, json);
      if (*job_status) return runtime::job_status_command(address, what, json);
      if (*job_logs) return runtime::job_logs_command(address, what, follow);
      return runtime::job_stop_command(address, what);
    }
    submit_options.address = address;
    return runtime::submit_command(submit_options);
  }

  CLI::App *start, *head, *stop, *status, *list, *submit, *logs, *why, *drain, *job, *job_list,
      *job_status, *job_logs, *job_stop, *metrics, *token, *stack, *top, *timeline, *doctor;
  CLI::App *autoscaler, *autoscaler_status, *autoscaler_check, *autoscaler_run;
  runtime::StartOptions start_options;
  runtime::HeadCommandOptions head_options;
  placement::AutoscalerCommandOptions autoscaler_options;
  runtime::SubmitOptions submit_options;
  runtime::DrainOptions drain_options;
  runtime::TokenCommandOptions token_options;
  runtime::ListOptions list_options;
  runtime::TopOptions top_options;
  double every_seconds = 2;
  runtime::TimelineOptions timeline_options;
  runtime::DoctorOptions doctor_options;
  std::string address, what;
  bool force_stop = false, json = false, follow = false, key = false;
};

/// The innermost command that was named.
const CLI::App& named(const CLI::App& app) {
  const auto subcommands = app.get_subcommands();
  return subcommands.empty() ? app : named(*subcommands.front());
}

/// What can be said behind it.
std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); }))
    names.push_back(command->get_name());
  if (app.get_parent() == nullptr)
    names.insert(names.end(), std::begin(kRlCommands), std::end(kRlCommands));
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// What is wrong with a command line.
std::string mistake(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = named(app);
  // What stopped at a value has not looked at the words behind it.
  if (dynamic_cast<const CLI::ConversionError*>(&error) ||
      dynamic_cast<const CLI::ValidationError*>(&error) ||
      dynamic_cast<const CLI::ArgumentMismatch*>(&error))
    return error.what();
  // A mistyped word leaves something required missing too: the mistake is what to name.
  if (const auto unknown = app.remaining(/*recurse=*/true); !unknown.empty()) {
    const std::string word = runtime::unmarked_argument(unknown.front());
    const bool is_option = word.starts_with('-');
    const std::string kind =
        is_option || commands_of(command).empty() ? "unknown argument" : "no command";
    return kind + " '" + word + "'" +
           runtime::did_you_mean(word.substr(0, word.find('=')),
                                 is_option ? options_of(command) : commands_of(command));
  }
  if (command.get_require_subcommand_min() > 0)
    return "a command is missing: " + joined(commands_of(command));
  return error.what();
}

}  // namespace

int main(int argc, char** argv) {
  runtime::open_standard_streams();
  for (const char* command : kRlCommands) {
    if (argc > 1 && std::strcmp(argv[1], command) == 0) return run_rl(argc, argv);
  }
  CLI::App app("Starling: actors, objects and reinforcement learning on a cluster", "starling");
  Commands commands(app);
  try {
    runtime::parse_whole_arguments(app, argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0)
      return runtime::finish_standard_output(app.exit(error));  // --help
    std::string command;
    for (const CLI::App* at = &named(app); at->get_parent(); at = at->get_parent())
      command = " " + at->get_name() + command;
    std::fprintf(stderr, "error: %s; see starling%s --help\n", mistake(app, error).c_str(),
                 command.c_str());
    return 2;
  }
  return runtime::finish_standard_output(commands.run());
}
