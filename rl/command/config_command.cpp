#include "rl/command/config_command.h"

#include <CLI/CLI.hpp>

#include <iostream>
#include <optional>

#include "rl/check/check_command.h"
#include "rl/command/command_line.h"
#include "rl/config/hydra_file.h"
#include "runtime/core/log.h"

namespace rl {

int run_config_command(runtime::Runtime& runtime, const ConfigCommand& command, int argc,
                       char** argv) {
  if (is_check_command(argc, argv)) return check_command(argc, argv);
  CLI::App app(
      command.description + " Keys have " + command.key_names + ", overrides Hydra's grammar.",
      "starling " + std::string(command.keys.command()));
  app.footer("Example:\n  " + command.example +
             "\nWithout a running cluster, one is started on this machine for as long as the "
             "command runs.");
  ConfigSources sources;
  sources.keys = &command.keys;
  ConfigFileOptions file;
  std::string address;
  bool print_config = false;
  bool dry = false;
  bool check = false;  // this and the next are starling-config's, which answers without LibTorch;
                       // here for --help
  bool schema = false;
  app.add_option("--config", file.file, "YAML file")->type_name("FILE");
  app.add_option("--config-path,--config-dir", file.hydra_path,
                 "as Hydra's: folder of the file that --config-name names")
      ->type_name("FOLDER");
  app.add_option("--config-name", file.hydra_name,
                 "as Hydra's: a file there; verl's own are the defaults")
      ->type_name("NAME");
  app.add_option("--address", address,
                 "HOST:PORT of a node of the cluster; default: STARLING_ADDRESS, then the last "
                 "`starling start`")
      ->type_name("ADDRESS");
  app.add_flag("--config-print", print_config,
               "print the merged configuration as YAML and do nothing else");
  app.add_flag("--dry-run", dry,
               "say what would run, with its batches and memory, and whether the keys fit "
               "together; start nothing");
  app.add_flag("--check", check,
               "say what each key means here, without models or data (--json: as JSON); exit code "
               "1: something is refused");
  app.add_flag("--config-schema", schema,
               "print the JSON schema of a configuration file, for editors");
  app.add_option("overrides", sources.overrides, "key=value, +key=value, ++key=value, ~key")
      ->type_name("OVERRIDE");
  if (const std::optional<int> exit = parse_command_line(app, argc, argv)) return *exit;
  const auto found = find_config_file(file);
  if (!found.ok()) return fail(found.status());
  sources.file = *found;
  const runtime::Result<Config> config = Config::load(sources);
  if (!config.ok()) return fail(config.status());
  if (print_config) {
    std::cout << config->to_yaml();
    return 0;
  }
  if (dry) {
    const runtime::Status fits = command.dry_run(*config, std::cout);
    return fits.ok() ? 0 : fail(fits);
  }
  for (const std::string& note : config->notes()) LOG(info, "{}", note);
  return runtime.run([&](runtime::Runtime& started) { return command.run(started, *config); });
}

}  // namespace rl
