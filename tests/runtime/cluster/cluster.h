// Cluster: real `starling` processes on the machines of a Network, and whatever else runs there.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "network.h"
#include "runtime/core/result.h"
#include "tests/support/eventually.h"

namespace runtime::test {

using support::eventually;

using Json = nlohmann::json;
using namespace std::chrono_literals;

/// A process on a machine, killed at the latest when this goes. Start it from the thread that lives
/// as long as it is to.
class Program {
 public:
  struct Spec {
    std::vector<std::string> argv{};
    std::vector<std::string> environment{};  // KEY=VALUE on top of this process's
    std::filesystem::path output{};          // stdout and stderr, appended
    std::chrono::seconds clock_ahead{0};  // of its monotonic and boot-time clocks: a time namespace
  };
  Program(const Machine& machine, const Spec& spec);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  bool runs();
  /// Its exit code, 128 + N after signal N; nothing while it runs on.
  std::optional<int> wait(std::chrono::milliseconds patience);
  std::string output() const;

 private:
  pid_t pid_ = 0;
  std::optional<int> code_;
  std::filesystem::path output_;
};

struct Finished {
  int code = -1;
  std::string output;
};

struct ClusterOptions {
  int machines = 4;
  bool ipv6 = false;
  bool everywhere = false;  // bind to all addresses, and advertise the machine's
  int port = 6500;
  bool durable = true;  // --journal: the cluster goes on after the death of the head's node
  std::vector<std::string> arguments{};  // of every node
  std::vector<std::string> head_arguments{};
  std::function<std::vector<std::string>(int machine)> environment{};  // more of it
  std::function<std::chrono::seconds(int machine)> clock_ahead{};
};

/// The head's node is on machine 0. Call from one thread.
class Cluster {
 public:
  Cluster(Network& network, std::filesystem::path folder, ClusterOptions options = {});
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  ~Cluster();

  /// All nodes, and waits until they are members.
  Status start();
  /// A node that is not running. Waits until it listens, and has joined.
  Status start_node(int machine);
  std::string address(int machine) const;
  int port() const { return options_.port; }
  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path token_file() const { return folder_ / "token"; }
  std::filesystem::path journal() const { return folder_ / "journal"; }
  Network& network() { return network_; }

  bool runs(int machine);
  pid_t node(int machine) const;  // 0: not there
  pid_t head() const;
  /// Processes that run actors on the machine.
  std::vector<pid_t> workers(int machine) const;
  void kill_node(int machine);

  std::unique_ptr<Program> launch(int machine, std::vector<std::string> argv,
                                  std::vector<std::string> environment = {});
  Finished run(int machine, std::vector<std::string> argv,
               std::chrono::milliseconds patience = 30s);
  Finished starling(int machine, std::vector<std::string> arguments);
  /// `starling list KIND --json`; null if it failed.
  Json list(int machine, const std::string& kind);
  /// How many nodes live, as that machine is told; -1 if it is told nothing.
  int members(int machine);
  bool wait_for_members(int count, std::chrono::milliseconds patience = 20s, int asked = 0);
  /// Logs of every node, head and worker: the last lines of each.
  std::string logs(std::size_t lines) const;
  /// `starling stop` on machine 0, then whatever is left.
  void stop();

 private:
  std::vector<std::string> environment(int machine) const;

  Network& network_;
  const std::filesystem::path folder_;
  const ClusterOptions options_;
  std::vector<std::unique_ptr<Program>> nodes_;
  int launched_ = 0;
};

std::string starling_program();
std::string own_program();
std::vector<pid_t> children_of(pid_t parent);
std::vector<std::string> command_line_of(pid_t pid);
long resident_kib(pid_t pid);
/// Takes all that is free on a disk, by a file "filler" in the folder.
void fill_disk(const std::filesystem::path& folder);

}  // namespace runtime::test
