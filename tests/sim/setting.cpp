#include "setting.h"

#include <algorithm>
#include <vector>

namespace sim {

Setting::Setting(std::uint64_t seed, bool trace)
    : world_(seed, trace),
      ledger_(world_),
      cluster_(world_, folder_.path()),
      faults_(world_, cluster_) {
  Stage::now = &stage_;
  world_.folder = folder_.path();
  world_.worker_main = [] {
    static char name[] = "driver";
    static char* argv[] = {name, nullptr};
    runtime::Runtime rt(1, argv);
    Witness::register_in(rt);
    rt.run([](runtime::Runtime&) { return 1; });
  };
  world_.head_main = [this](const std::vector<std::string>& argv) {
    run_head(world_, journal_, Cluster::token(), argv);
  };
}

Setting::~Setting() { Stage::now = nullptr; }

bool Setting::come_up() {
  const auto& machines = cluster_.machines();
  return world_.run_until(
      [&] {
        return std::all_of(machines.begin(), machines.end(), [](const auto& m) { return m.up; });
      },
      world_.now() + 30s);
}

Outcome Setting::finish() {
  ledger_.check();
  world_.end();
  Outcome outcome;
  outcome.failure = world_.failure();
  outcome.hash = world_.trace_hash();
  outcome.steps = world_.steps();
  outcome.seconds = static_cast<double>(world_.age().count()) / 1e6;
  outcome.calls = ledger_.calls();
  outcome.runs = ledger_.runs();
  outcome.succeeded = ledger_.succeeded();
  return outcome;
}

}  // namespace sim
