// Faults: the random faults of a simulated cluster.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "cluster.h"
#include "world.h"

namespace sim {

/// What goes wrong, and how often.
struct Weather {
  std::chrono::microseconds every{0};  // on average; 0: fine
  bool half_open = false;              // connections that die in silence as well
  bool machines_die = false;
  bool head_dies = false;         // with its node; the cluster ends
  bool head_is_replaced = false;  // its process alone; another goes on with the journal
  bool small_stores = false;      // what no process reads moves to disk
  bool gangs = false;             // placement groups as well
};

class Faults {
 public:
  Faults(World& world, Cluster& cluster) : world_(world), cluster_(cluster) {}
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  /// From now on, while World::faults is set. What began before ends.
  void begin(const Weather& weather);
  /// One that may be killed, and is with its machine.
  void add_driver(std::shared_ptr<Process> driver, std::size_t machine);
  void forget_drivers() { drivers_.clear(); }

  /// Since the beginning: whether connections may have died in silence, and machines did.
  bool half_opened() const { return half_opened_; }
  bool fell_silent() const { return fell_silent_; }

 private:
  struct Driver {
    std::shared_ptr<Process> process;
    std::size_t machine;
  };
  void schedule(std::uint64_t round);
  void make_one();
  void die(std::size_t machine);
  /// Has the node leave in order.
  void drain(std::size_t machine);

  World& world_;
  Cluster& cluster_;
  Weather weather_;
  std::uint64_t round_ = 0;
  std::vector<Driver> drivers_;
  bool half_opened_ = false;
  bool fell_silent_ = false;
};

}  // namespace sim
