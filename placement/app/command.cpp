#include "placement/app/command.h"

namespace placement {

CLI::App* add_cluster_command(CLI::App& app, const char* name, const char* help,
                              std::string& address) {
  CLI::App* command = app.add_subcommand(name, help);
  command->add_option("--address", address, "the cluster's HOST:PORT")->type_name("HOST:PORT");
  return command;
}

void add_amounts(CLI::App& command, CliAmounts& amounts, const AmountsHelp& help) {
  command.add_option("--num-cpus,--cpus", amounts.cpus, help.cpus)->check(CLI::Number);
  command.add_option("--num-gpus,--gpus", amounts.gpus, help.gpus)->check(CLI::Number);
  command.add_option("--resources", amounts.resources, help.resources);
}

CLI::Validator is_bytes() {
  return {[size = CLI::AsSizeValue(false)](std::string& text) {
            return text.starts_with('-') ? text + " is below 0" : size(text);
          },
          "BYTES"};
}

CLI::Validator is_not_empty() {
  return {
      [](std::string& text) {
        return std::string(text.empty() ? "it is empty; leave the option out to go without" : "");
      },
      ""};
}

}  // namespace placement
