// Cluster: the nodes of a simulated cluster, each a simulated process that runs the production
// Node, the first with the head in it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/node/node.h"
#include "world.h"

namespace sim {

class Cluster {
 public:
  /// `folder` is for session folders; each seed has its own.
  Cluster(World& world, std::filesystem::path folder);

  /// How much shared memory each node has, and how much it may move to disk. Before the first
  /// machine.
  void set_store(std::uint64_t bytes, std::uint64_t disk_bytes) {
    store_bytes_ = bytes;
    disk_bytes_ = disk_bytes;
  }
  /// Starts a machine with a node; the first one has the head.
  void add_machine(double cpus);
  /// Starts the node of a machine whose node has ended, as a new one.
  void restart(std::size_t machine);

  struct Machine {
    std::shared_ptr<Process> node;  // of the last start
    std::string address;
    double cpus = 0;
    bool up = false;  // it has joined
    runtime::Node* running = nullptr;
  };
  const std::vector<Machine>& machines() const { return machines_; }
  static const char* token();
  /// Environment variables of a driver on the machine.
  std::map<std::string, std::string> driver_variables() const;

 private:
  void run_node(std::size_t machine);
  /// As a member of the cluster under one id; whether it is to join again under another.
  bool live(runtime::EventLoop& loop, std::size_t machine);

  World& world_;
  const std::filesystem::path folder_;
  const runtime::ClusterId cluster_;
  std::uint64_t store_bytes_ = 64 << 20;
  std::uint64_t disk_bytes_ = 0;
  std::vector<Machine> machines_;
};

}  // namespace sim
