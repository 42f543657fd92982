#include "runtime/core/whole_arguments.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include <initializer_list>
#include <string>
#include <vector>

namespace runtime {
namespace {

using Words = std::vector<std::string>;

/// A program with a command that takes what the project's commands take.
struct Program {
  Program() {
    command->add_option("--label", labels);
    command->add_option("--name", name);
    command->add_option("--id", ids);
    command->add_option("--count", count)->check(CLI::Range(0, 9));
    command->add_option_group("more")->add_option("--grouped", grouped);
    command->add_flag("--json", json);
    command->add_option("command", words);
    command->positionals_at_end();
  }

  Program& parse(std::initializer_list<const char*> arguments) {
    std::vector<const char*> argv = {"program", "run"};
    argv.insert(argv.end(), arguments);
    parse_whole_arguments(app, static_cast<int>(argv.size()), argv.data());
    return *this;
  }

  CLI::App app{"", "program"};
  CLI::App* command = app.add_subcommand("run");
  Words labels, words, grouped;
  std::string name;
  std::vector<int> ids;
  int count = 0;
  bool json = false;
};

TEST(WholeArguments, WhatLooksLikeAListIsOneArgument) {
  EXPECT_EQ(
      Program().parse({"--", "printf", "[a,b]", "[]", "[INST] hi, you [/INST]", "[[1],[2]]"}).words,
      (Words{"printf", "[a,b]", "[]", "[INST] hi, you [/INST]", "[[1],[2]]"}));
  EXPECT_EQ(Program().parse({"--", "p", "--", "{}", "", "%%", "++", "run", "--json", "x,y"}).words,
            (Words{"p", "--", "{}", "", "%%", "++", "run", "--json", "x,y"}));
}

TEST(WholeArguments, AndOneValueOfAnOption) {
  Program program;
  program.parse({"--label", "[b=c]", "--label=[d,e]", "--label", "f", "[g,h]", "--name", "[n,m]",
                 "--grouped", "[]", "--json", "--", "p"});
  EXPECT_EQ(program.labels, (Words{"[b=c]", "[d,e]", "f", "[g,h]"}));
  EXPECT_EQ(program.name, "[n,m]");
  EXPECT_EQ(program.grouped, Words{"[]"});
  EXPECT_EQ(program.words, Words{"p"});
  EXPECT_TRUE(program.json);
}

TEST(WholeArguments, NothingBehindTheEqualsSignIsAnEmptyValue) {
  Program program;
  program.parse({"--name=", "--label=", "--json"});
  EXPECT_EQ(program.name, "");
  EXPECT_EQ(program.labels, Words{""});
  EXPECT_TRUE(program.json);
}

TEST(WholeArguments, MistakesAreNamedAsTheyWereTyped) {
  const auto what = [](std::initializer_list<const char*> arguments) {
    Program program;
    try {
      program.parse(arguments);
    } catch (const CLI::ParseError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(what({"--count", "[5]"}), "--count: Value [5] not in range 0 to 9");
  EXPECT_EQ(what({"--id", "[1,2]"}), "Could not convert: --id = [1,2]");
  Program unknown;
  EXPECT_THROW(unknown.parse({"--lable=[x]"}), CLI::ParseError);
  ASSERT_EQ(unknown.app.remaining(true).size(), 1u);
  EXPECT_EQ(unmarked_argument(unknown.app.remaining(true).front()), "--lable=[x]");
}

}  // namespace
}  // namespace runtime
