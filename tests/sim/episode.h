// Episode: a few drivers that use the cluster at the same time, from their start until nothing of
// them is left. It checks whether what they were promised held.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "cluster.h"
#include "driver.h"
#include "faults.h"
#include "ledger.h"
#include "world.h"

namespace sim {

class Episode {
 public:
  struct Plan {
    bool small_stores = false;  // what no process reads moves to disk
    bool gangs = false;         // placement groups as well
    bool calm = false;          // nothing goes wrong
  };
  Episode(World& world, Ledger& ledger, Cluster& cluster, Faults& faults, Plan plan)
      : world_(world), ledger_(ledger), cluster_(cluster), faults_(faults), plan_(plan) {}
  Episode(const Episode&) = delete;
  Episode& operator=(const Episode&) = delete;

  /// What breaks a promise fails the world. `weather` lasts until they have done their work.
  void run(const Weather& weather);
  /// By the nodes that were there at the end.
  std::uint64_t spills() const { return spills_; }

 private:
  void start_drivers();
  void work();
  bool all_in(const std::set<int>& numbers) const;
  bool all_ended() const;
  bool workers_left() const;
  void check_quiet();
  void check_objects();
  void check_refs();
  void check_account();

  World& world_;
  Ledger& ledger_;
  Cluster& cluster_;
  Faults& faults_;
  const Plan plan_;
  Rendezvous rendezvous_;
  std::vector<std::unique_ptr<Driver>> programs_;
  std::vector<std::shared_ptr<Process>> drivers_;
  std::uint64_t spills_ = 0;
};

}  // namespace sim
