// Ranks that are processes. On a device autograd has one thread in each process, in which ranks of
// one process would wait for each other.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/comm/gloo_communicator.h"
#include "rl/comm/rendezvous.h"
#include "tests/support/eventually.h"

namespace rl::testing {

/// A rendezvous of processes of one machine: keys are files of a folder.
class FolderRendezvous final : public Rendezvous {
 public:
  explicit FolderRendezvous(std::filesystem::path folder) : folder_(std::move(folder)) {}

  runtime::Status put(const std::string& key, std::span<const std::uint8_t> value) override {
    const std::filesystem::path place = place_of(key);
    const std::filesystem::path half = place.string() + "." + std::to_string(::getpid());
    std::ofstream(half, std::ios::binary)
        .write(reinterpret_cast<const char*>(value.data()),
               static_cast<std::streamsize>(value.size()));
    std::filesystem::rename(half, place);
    return {};
  }
  runtime::Result<std::vector<std::uint8_t>> get(const std::string& key,
                                                 std::chrono::milliseconds wait) override {
    const std::filesystem::path place = place_of(key);
    if (!support::eventually([&] { return std::filesystem::exists(place); }, wait,
                             std::chrono::milliseconds(1)))
      return runtime::deadline_exceeded("no " + key + " in " + folder_.string());
    std::ifstream file(place, std::ios::binary);
    return std::vector<std::uint8_t>(std::istreambuf_iterator<char>(file), {});
  }
  runtime::Result<std::int64_t> add(const std::string& key, std::int64_t /*amount*/) override {
    return runtime::unimplemented("counting " + key + " over processes");
  }

 private:
  std::filesystem::path place_of(const std::string& key) const {
    std::string name = key;
    for (char& c : name)
      if (c == '/') c = '_';
    return folder_ / ("at_" + name);
  }

  const std::filesystem::path folder_;
};

/// Runs `body` in a process for each rank, and fails where an expectation fails in one. `folder`:
/// an empty one, where they meet.
inline void in_rank_processes(
    int ranks, const std::filesystem::path& folder,
    const std::function<void(std::unique_ptr<Communicator> communicator, int rank)>& body) {
  std::filesystem::create_directories(folder);
  std::vector<pid_t> children;
  std::fflush(nullptr);
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      {
        auto communicator =
            make_gloo_communicator(std::make_shared<FolderRendezvous>(folder),
                                   {.rank = rank, .size = ranks, .host = "127.0.0.1"});
        EXPECT_TRUE(communicator.ok()) << communicator.status().to_string();
        if (communicator.ok()) body(*std::move(communicator), rank);
      }
      std::fflush(nullptr);
      ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    int status = 0;
    ::waitpid(children[rank], &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << "rank " << rank << ": status " << status;
  }
}

}  // namespace rl::testing
