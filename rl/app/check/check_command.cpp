#include "rl/app/check/check_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include <cstring>
#include <iostream>
#include <string>

#include "rl/config/check.h"
#include "rl/config/hydra_file.h"
#include "rl/config/key_tables.h"
#include "rl/config/schema.h"
#include "runtime/core/printable_text.h"
#include "runtime/core/whole_arguments.h"

namespace rl {
namespace {

int fail(const runtime::Status& status) {
  std::cerr << "error: " << runtime::terminal_text(STDERR_FILENO, status.message()) << "\n";
  return 1;
}

}  // namespace

bool is_check_command(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    for (const char* flag : {"--check", "--config-schema", "--write-tables"}) {
      if (std::strcmp(argv[i], flag) == 0) return true;
    }
  }
  return false;
}

int check_command(int argc, char** argv) {
  const KeyTable* keys = find_key_table(argv[0]);
  if (keys == nullptr)
    return fail(
        runtime::invalid_argument("no command '" + std::string(argv[0]) + "' has a configuration"));
  const std::string command(argv[0]);
  CLI::App app("Says what each key of a configuration means here, without reading models or data.",
               "starling " + command + " --check");
  ConfigSources sources;
  ConfigFileOptions file;
  bool check = false;
  bool json = false;
  app.add_flag("--check", check, "judge each key by itself; exit code 0: nothing is refused");
  bool schema = false;
  app.add_flag("--config-schema", schema,
               "print the JSON schema of a configuration file, for editors");
  std::string page;
  app.add_option("--write-tables", page, "put the lists of keys into this page of the guide")
      ->group("");
  app.add_flag("--json", json, "as one JSON object");
  app.add_option("--config", file.file, "YAML file")->type_name("FILE");
  app.add_option("--config-path,--config-dir", file.hydra_path,
                 "folder of the file that --config-name names")
      ->type_name("FOLDER");
  app.add_option("--config-name", file.hydra_name, "a file there; verl's own are the defaults")
      ->type_name("NAME");
  app.add_option("overrides", sources.overrides, "key=value, +key=value, ++key=value, ~key")
      ->type_name("OVERRIDE");
  std::string address;  // of a run; of no use here
  app.add_option("--address", address)->group("");
  try {
    runtime::parse_whole_arguments(app, argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    std::cerr << "error: " << error.what() << "; see " << app.get_name() << " --help\n";
    return 2;
  }
  if (schema) {
    std::cout << config_schema(*keys).dump(2) << "\n";
    return 0;
  }
  if (!page.empty()) {
    const runtime::Status written = write_key_tables(page, *keys);
    return written.ok() ? 0 : fail(written);
  }
  const auto found = find_config_file(file);
  if (!found.ok()) return fail(found.status());
  sources.file = *found;
  sources.keys = keys;
  const auto result = check_config(sources);
  if (!result.ok()) return fail(result.status());
  if (json) {
    std::cout << to_json(*result).dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
              << "\n";
  } else {
    std::cout << to_text(*result);
  }
  return result->passes() ? 0 : 1;
}

}  // namespace rl
