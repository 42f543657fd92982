// Submits jobs to real nodes, and looks at what becomes of them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/process/file_util.h"
#include "tests/runtime/node/cluster_fixture.h"

namespace runtime {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class Job : public ClusterTest {
 protected:
  /// Submits it detached; its id.
  std::string submit(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"submit", "--detach"});
    CommandResult result = starling(std::move(arguments));
    EXPECT_EQ(result.code, 0) << result.err;
    return result.last_line();
  }
  Json job(const std::string& id) {
    CommandResult result = starling({"job", "status", id, "--json"});
    EXPECT_EQ(result.code, 0) << result.err;
    return result.code == 0 ? Json::parse(result.out) : Json();
  }
  /// The process that the job says it has left; 0: it says nothing.
  int left_by(const std::string& id) {
    std::string log;
    EXPECT_TRUE(eventually(
        [&] {
          return (log = starling({"job", "logs", id}).out).find("left ") != log.npos;
        },
        std::chrono::seconds(20)));
    int left = 0;
    EXPECT_EQ(std::sscanf(log.c_str(), "left %d", &left), 1) << log;
    return left;
  }
  Json wait_for_end(const std::string& id) {
    Json found;
    EXPECT_TRUE(eventually(
        [&] { return (found = job(id))["state"] != "running" && found["state"] != "pending"; },
        std::chrono::seconds(20)))
        << found;
    return found;
  }
  static void write(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
    fs::permissions(file, fs::perms::owner_all);
  }
  /// Words of a shell: waits until the test has written that file of work_.
  std::string until(const std::string& file) const {
    return "until [ -e '" + work_.file(file) + "' ]; do sleep 0.02; done; ";
  }
  static int head_of(int node) {
    std::error_code error;
    for (const auto& thread : fs::directory_iterator("/proc/" + std::to_string(node) + "/task",
                                                     error)) {  // any of which may have started it
      std::ifstream children(thread.path() / "children");
      for (int pid = 0; children >> pid;) {
        auto words = runtime::read_file("/proc/" + std::to_string(pid) + "/cmdline", 1 << 20);
        if (words.ok() && words->find(std::string("\0head\0", 6)) != std::string::npos) return pid;
      }
    }
    return 0;
  }
  fs::path folders() { return cache_folder_.path() / "jobs"; }
  support::TemporaryFolder work_;
};

}  // namespace runtime
