// said_to(): what the program `starling` does with a command line, if it has one command.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "placement/app/command.h"
#include "placement/app/usage_mistake.h"
#include "runtime/core/whole_arguments.h"
#include "tests/placement/app/fake_cluster.h"

namespace placement {

/// The words begin with the command's name. Code 2: they were not understood.
inline Said said_to(Command (*add)(CLI::App& app), const std::vector<std::string>& words) {
  return said_by([&] {
    CLI::App app("", "starling");
    app.require_subcommand(1);
    const Command command = add(app);
    std::vector<const char*> arguments{"starling"};
    for (const std::string& word : words) arguments.push_back(word.c_str());
    try {
      runtime::parse_whole_arguments(app, static_cast<int>(arguments.size()), arguments.data());
    } catch (const CLI::ParseError& error) {
      std::fprintf(stderr, "%s\n", usage_mistake(app, error).c_str());
      return 2;
    }
    return command.run();
  });
}

/// The same on that cluster.
inline Said said_to(Command (*add)(CLI::App& app), std::vector<std::string> words,
                    const FakeCluster& cluster) {
  words.insert(words.end(), {"--address", cluster.address()});
  return said_to(add, words);
}

/// Expects the exit code, with these parts on stderr and nothing on stdout.
inline void expect_refused(const Said& said, int code, const std::vector<std::string>& parts) {
  EXPECT_EQ(said.code, code) << said.err;
  EXPECT_EQ(said.out, "");
  expect_said(said.err, parts);
}

}  // namespace placement
