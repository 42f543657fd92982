// Script: a small program of the shell, as a child process that a part of a node starts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace runtime {

/// A folder for the program and what it writes there.
class Script {
 public:
  explicit Script(const std::string& name = "program") : program_(folder_.file(name)) {
    std::filesystem::create_directories(folder_.path() / "logs");
    // The part may hold the file open, so that it is always this one.
    std::ofstream(program_) << "#!/bin/sh\nHERE=" << folder_.path().string() << "\n. $HERE/body\n";
    std::filesystem::permissions(program_, std::filesystem::perms::owner_all);
  }

  /// What it does when it is started from now on. $HERE is the folder.
  void write(const std::string& does) {
    const std::filesystem::path body = folder_.path() / "body", next = folder_.path() / "next";
    std::ofstream(next) << does << "\n";
    std::filesystem::rename(next, body);  // no process reads half of it
  }
  const std::string& program() const { return program_; }
  const std::filesystem::path& folder() const { return folder_.path(); }
  /// What it has written to a file there.
  std::string text(const std::string& file) const {
    std::ostringstream text;
    text << std::ifstream(folder_.path() / file).rdbuf();
    return text.str();
  }
  std::size_t lines(const std::string& file) const {
    const std::string all = text(file);
    return static_cast<std::size_t>(std::count(all.begin(), all.end(), '\n'));
  }

 private:
  support::TemporaryFolder folder_;
  std::string program_;
};

}  // namespace runtime
