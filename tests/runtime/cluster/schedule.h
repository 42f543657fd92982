// Schedule: faults of every kind, one after another and some at once, as a seed decides.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cluster.h"
#include "load.h"

namespace runtime::test {

struct ScheduleOptions {
  std::uint64_t seed = 1;
  std::chrono::seconds duration{20};
  std::vector<int> clients_on{1, 2};  // machines with a load
  LoadOptions load{};                 // of each; client and history are filled in
  std::vector<int> delaying{};        // machines whose link can hold packets up
  std::filesystem::path
      journal_disk{};  // a small file system of which the journal is a part; empty: none
  std::function<void(std::int64_t)> set_wall_clock{};  // seconds; none: it does not jump
};

class Schedule {
 public:
  Schedule(Cluster& cluster, Network& network, std::string history, ScheduleOptions options);
  /// Runs the load with faults, then ends all faults, and waits until every node is a member again
  /// and every client has ended. What is wrong, if that does not come to pass.
  Status run();
  /// What was done, with times.
  std::string trace() const { return trace_; }
  int faults() const { return faults_; }
  int clients() const { return last_client_; }

 private:
  struct Client {
    int machine = 0;
    std::unique_ptr<Program> program;
    std::chrono::steady_clock::time_point again{};
  };
  /// A fault that lasts, and how it ends.
  struct Lasting {
    std::chrono::steady_clock::time_point until;
    std::string name;
    std::function<void()> end;
  };

  void inject();
  /// Restarts what has ended, as a machine's supervisor would; ends what has lasted long
  /// enough.
  void look_after();
  void last(std::chrono::milliseconds shortest, std::chrono::milliseconds longest,
            const std::string& name, std::function<void()> end);
  void kill(pid_t pid, const std::string& what);
  void stop(pid_t pid, std::chrono::milliseconds longest, const std::string& what);
  void note(const std::string& what);
  std::chrono::milliseconds between(std::chrono::milliseconds shortest,
                                    std::chrono::milliseconds longest);
  int any(int count) { return std::uniform_int_distribution<>(0, count - 1)(random_); }
  pid_t any_worker();

  Cluster& cluster_;
  Network& network_;
  const std::string history_;
  HistoryFile file_;
  const ScheduleOptions options_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::mt19937_64 random_;
  std::vector<Client> clients_;
  std::vector<Lasting> lasting_;
  std::vector<std::chrono::steady_clock::time_point> node_again_;
  std::string trace_;
  int faults_ = 0;
  int last_client_ = 0;
  bool network_is_faulty_ = false;
};

}  // namespace runtime::test
