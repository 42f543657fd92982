#include "placement/app/command.h"

#include <memory>

#include "placement/app/cli_autoscaler.h"

namespace placement {

Command add_autoscaler(CLI::App& app) {
  struct Options {
    std::string address, file;
    bool json = false;
    AutoscalerCommandOptions run;
  };
  auto options = std::make_shared<Options>();
  CLI::App* autoscaler =
      app.add_subcommand("autoscaler",
                         "Show the autoscaler, which adds and removes nodes, or check its file "
                         "(`start --head --autoscaler FILE` runs it)");
  autoscaler->require_subcommand(1);
  CLI::App* status = add_cluster_command(*autoscaler, "status",
                                         "Show its decisions and their reasons", options->address);
  status->add_flag("--json", options->json, "as one JSON object");
  CLI::App* check = autoscaler->add_subcommand(
      "check", "Check a configuration, and that the provider's command can be run");
  check->add_option("file", options->file, "YAML file")->required();
  CLI::App* run =
      autoscaler
          ->add_subcommand(
              "run", "The autoscaler's process, which the node next to the head starts by itself.")
          ->group("");
  run->add_option("--config", options->run.config);
  run->add_option("--address", options->run.address);
  run->add_option("--left", options->run.left);
  return {autoscaler, [options, status, check] {
            if (*status) return autoscaler_status_command(options->address, options->json);
            if (*check) return autoscaler_check_command(options->file);
            return autoscaler_run_command(options->run);
          }};
}

}  // namespace placement
