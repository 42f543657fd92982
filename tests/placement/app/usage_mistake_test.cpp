#include "placement/app/usage_mistake.h"

#include <gtest/gtest.h>

#include "placement/app/command.h"
#include "runtime/core/whole_arguments.h"

namespace placement {
namespace {

/// What is said of a command line of a program with two commands; empty: nothing is wrong with it.
std::string mistake_of(std::vector<const char*> words) {
  CLI::App app("", "starling");
  app.require_subcommand(1);
  const Command status = add_status(app), job = add_job(app);
  words.insert(words.begin(), "starling");
  try {
    runtime::parse_whole_arguments(app, static_cast<int>(words.size()), words.data());
  } catch (const CLI::ParseError& error) {
    return usage_mistake(app, error);
  }
  return status.app->parsed() || job.app->parsed() ? "" : "no command was chosen";
}

TEST(UsageMistake, NamesTheNearestWord) {
  EXPECT_EQ(mistake_of({"status", "--json"}), "");
  EXPECT_EQ(mistake_of({"statsu"}), "no command 'statsu'; did you mean 'status'?");
  EXPECT_EQ(mistake_of({"tran"}), "no command 'tran'; did you mean 'train'?")
      << "a command of another program";
  EXPECT_EQ(mistake_of({"status", "--jsn"}), "unknown argument '--jsn'; did you mean '--json'?");
}

TEST(UsageMistake, ListsTheCommandsWhereOneIsMissing) {
  EXPECT_EQ(mistake_of({"job"}), "a command is missing: list, status, logs, stop");
}

TEST(UsageMistake, NamesTheInnermostCommand) {
  CLI::App app("", "starling");
  const Command job = add_job(app);
  const char* words[] = {"starling", "job", "stop", "7f3a"};
  runtime::parse_whole_arguments(app, 4, words);
  EXPECT_EQ(named_command(app).get_name(), "stop");
}

}  // namespace
}  // namespace placement
