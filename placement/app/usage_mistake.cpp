#include "placement/app/usage_mistake.h"

#include <vector>

#include "placement/app/rl_program.h"
#include "runtime/core/nearest.h"
#include "runtime/core/whole_arguments.h"

namespace placement {

namespace {

/// What can be said behind it.
std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); }))
    names.push_back(command->get_name());
  if (app.get_parent() == nullptr) {
    for (const RlCommand& command : kRlCommands) names.push_back(command.name);
  }
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

}  // namespace

const CLI::App& named_command(const CLI::App& app) {
  const auto subcommands = app.get_subcommands();
  return subcommands.empty() ? app : named_command(*subcommands.front());
}

std::string usage_mistake(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = named_command(app);
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

}  // namespace placement
