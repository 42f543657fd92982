// Setting: the world of one seed, with a cluster in it, and what came of it.
#pragma once

#include <cstdint>
#include <string>

#include "actors.h"
#include "cluster.h"
#include "faults.h"
#include "head_main.h"
#include "ledger.h"
#include "scenario.h"
#include "tests/support/temporary_folder.h"
#include "world.h"

namespace sim {

class Setting {
 public:
  Setting(std::uint64_t seed, bool trace);
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  ~Setting();

  World& world() { return world_; }
  Ledger& ledger() { return ledger_; }
  Cluster& cluster() { return cluster_; }
  Faults& faults() { return faults_; }
  const JournalDisk& journal() const { return journal_; }

  /// Waits until every machine's node is a member.
  bool come_up();
  /// Ends everything.
  Outcome finish();

 private:
  support::TemporaryFolder folder_;
  World world_;
  Ledger ledger_;
  Stage stage_{&world_, &ledger_};
  JournalDisk journal_;
  Cluster cluster_;
  Faults faults_;
};

}  // namespace sim
