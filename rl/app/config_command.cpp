#include "rl/app/config_command.h"

#include <CLI/CLI.hpp>

#include <iostream>
#include <optional>
#include <sstream>
#include <vector>

#include "rl/app/check/check_command.h"
#include "rl/app/cluster_choice.h"
#include "rl/app/command_line.h"
#include "rl/config/hydra_file.h"
#include "runtime/core/log.h"

namespace rl {

namespace {

/// What was given on the command line.
struct GivenOptions {
  ConfigFileOptions file;
  std::vector<std::string> overrides;
  std::string address;
  bool own_cluster = false;
  bool print_config = false;
  bool dry = false;
  bool check = false;  // this and the next are starling-config's, which answers without LibTorch;
                       // here for --help
  bool schema = false;

  void add_to(CLI::App& app) {
    app.add_option("--config", file.file, "YAML file")->type_name("FILE");
    app.add_option("--config-path,--config-dir", file.hydra_path,
                   "as Hydra's: folder of the file that --config-name names")
        ->type_name("FOLDER");
    app.add_option("--config-name", file.hydra_name,
                   "as Hydra's: a file there; verl's own are the defaults")
        ->type_name("NAME");
    app.add_option("--address", address,
                   "HOST:PORT of a node of the cluster, or private; default: STARLING_ADDRESS, "
                   "then the last `starling start`")
        ->type_name("ADDRESS");
    app.add_flag("--private", own_cluster,
                 "start a cluster on this machine for as long as the command runs, whichever "
                 "others run")
        ->excludes("--address");
    app.add_flag("--config-print", print_config,
                 "print the merged configuration as YAML and do nothing else");
    app.add_flag("--dry-run", dry,
                 "say what would run, with its batches and memory, and whether the keys fit "
                 "together; start nothing");
    app.add_flag("--check", check,
                 "say what each key means here, without models or data (--json: as JSON); exit "
                 "code 1: something is refused");
    app.add_flag("--config-schema", schema,
                 "print the JSON schema of a configuration file, for editors");
    app.add_option("overrides", overrides, "key=value, +key=value, ++key=value, ~key")
        ->type_name("OVERRIDE");
  }
};

int plan_run(const ConfigCommand& command, const Config& config,
             const runtime::Result<runtime::ClusterView>& cluster) {
  // Without its cluster a run could be planned all the same; the run will say what is wrong.
  std::vector<NodeRoom> nodes;
  if (cluster.ok()) nodes = node_rooms(cluster->nodes);
  const runtime::Status fits = command.dry_run(config, std::cout, nodes);
  std::cout << (cluster.ok() ? "the run " + std::string(cluster->is_private ? "has " : "") +
                                   cluster_text(*cluster)
                             : "no cluster: " + cluster.status().message())
            << "\n";
  return fits.ok() ? 0 : fail(fits);
}

}  // namespace

int run_config_command(runtime::Runtime& runtime, const ConfigCommand& command, int argc,
                       char** argv) {
  if (is_check_command(argc, argv)) return check_command(argc, argv);
  CLI::App app(
      command.description + " Keys have " + command.key_names + ", overrides Hydra's grammar.",
      "starling " + std::string(command.keys.command()));
  app.footer("Example:\n  " + command.example +
             "\nWithout a running cluster, one is started on this machine for as long as the "
             "command runs.");
  GivenOptions given;
  given.add_to(app);
  if (const std::optional<int> exit = parse_command_line(app, argc, argv)) return *exit;
  const auto found = find_config_file(given.file);
  if (!found.ok()) return fail(found.status());
  ConfigSources sources;
  sources.keys = &command.keys;
  sources.file = *found;
  sources.overrides = given.overrides;
  const runtime::Result<Config> config = Config::load(sources);
  if (!config.ok()) return fail(config.status());
  if (given.print_config) {
    std::cout << config->to_yaml();
    return 0;
  }
  const runtime::Result<runtime::ClusterView> cluster =
      choose_cluster(given.address, given.own_cluster);
  if (given.dry) return plan_run(command, *config, cluster);
  if (!cluster.ok()) return fail(cluster.status());
  std::istringstream lines(cluster_text(*cluster));
  for (std::string line; std::getline(lines, line);) LOG(info, "{}", line);
  for (const std::string& note : config->notes()) LOG(info, "{}", note);
  return runtime.run([&](runtime::Runtime& started) { return command.run(started, *config); });
}

}  // namespace rl
