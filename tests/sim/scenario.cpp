#include "scenario.h"

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "cluster.h"
#include "driver.h"
#include "head_main.h"
#include "tests/support/temporary_folder.h"

namespace sim {

namespace {

/// What goes wrong in this seed, and how often.
struct Weather {
  std::chrono::microseconds every{0};  // on average; 0: fine
  bool half_open = false;              // connections that die in silence as well
  bool machines_die = false;
  bool head_dies = false;         // with its node; the cluster ends
  bool head_is_replaced = false;  // its process alone; another goes on with the journal
  bool small_stores = false;      // what nobody reads moves to disk
  bool gangs = false;             // placement groups as well
};

class Scenario {
 public:
  Scenario(std::uint64_t seed, bool trace) : world_(seed, trace), ledger_(world_) {}

  Outcome run();

 private:
  void plan();
  void schedule_fault();
  void make_fault();
  void die(std::size_t machine);
  /// Has the node leave in order.
  void drain(std::size_t machine);
  bool all_ended(const std::vector<std::shared_ptr<Process>>& processes) const;
  bool workers_left() const;
  void check_objects();
  void check_refs();
  void check_account();
  std::vector<std::unique_ptr<Driver>> programs_;

  support::TemporaryFolder folder_;
  World world_;
  Ledger ledger_;
  Stage stage_{&world_, &ledger_};
  JournalDisk journal_;
  std::unique_ptr<Cluster> cluster_;
  Rendezvous rendezvous_;
  Weather weather_;
  std::vector<std::shared_ptr<Process>> drivers_;
  std::vector<std::size_t> driver_machines_;
  bool half_opened_ = false;
  bool fell_silent_ = false;
  std::uint64_t spills_ = 0;
};

bool Scenario::all_ended(const std::vector<std::shared_ptr<Process>>& processes) const {
  for (const auto& process : processes) {
    if (!process->ended) return false;
  }
  return true;
}

bool Scenario::workers_left() const {
  for (const auto& process : world_.processes()) {
    if (!process->worker.is_none() && !process->ended) return true;
  }
  return false;
}

void Scenario::plan() {
  Random& random = world_.random();
  if (!random.one_in(8)) weather_.every = random.micros(1000, random.one_in(2) ? 20'000 : 200'000);
  weather_.half_open = random.one_in(3);
  weather_.machines_die = random.one_in(3);
  weather_.head_dies = random.one_in(12);
  weather_.head_is_replaced = random.one_in(2);
  weather_.small_stores = random.one_in(4);
  weather_.gangs = random.one_in(2);
  const auto machines = 1 + random.below(3);
  cluster_ = std::make_unique<Cluster>(world_, folder_.path());
  if (weather_.small_stores) {
    const bool small_disk = weather_.every.count() > 0 && random.one_in(3);
    cluster_->set_store(1 << 20, small_disk ? 512 << 10 : 64 << 20);
    world_.disk_fails = random.one_in(2) ? 2 + random.below(10) : 0;
  }
  for (std::uint64_t i = 0; i < machines; ++i) cluster_->add_machine(8);
}

void Scenario::schedule_fault() {
  if (weather_.every.count() == 0) return;
  world_.call_later(world_.random().micros(1, 2 * weather_.every.count()), [this] {
    if (!world_.faults) return;
    make_fault();
    schedule_fault();
  });
}

void Scenario::die(std::size_t machine) {
  const auto& machines = cluster_->machines();
  if (machines[machine].node->ended) return;
  // Either the node's process alone, or the whole machine, of which nobody hears again.
  const bool whole = world_.random().one_in(2);
  fell_silent_ = fell_silent_ || whole;
  for (std::size_t i = 0; i < drivers_.size(); ++i) {
    if (whole && driver_machines_[i] == machine) world_.crash(*drivers_[i], Farewell::kSilence);
  }
  world_.crash(*machines[machine].node, whole ? Farewell::kSilence : Farewell::kReset);
}

void Scenario::drain(std::size_t machine) {
  const auto& drained = cluster_->machines()[machine];
  if (!drained.up || drained.node->crashed) return;
  const auto time =
      world_.random().micros(50'000, world_.random().one_in(2) ? 1'000'000 : 10'000'000);
  drained.running->drain("drill", std::chrono::ceil<std::chrono::milliseconds>(time));
}

void Scenario::make_fault() {
  Random& random = world_.random();
  Network& network = world_.network();
  std::vector<Process*> living;
  std::vector<Process*> workers;
  for (const auto& process : world_.processes()) {
    if (process->ended || process->crashed) continue;
    living.push_back(process.get());
    if (!process->worker.is_none()) workers.push_back(process.get());
  }
  switch (random.below(13)) {
    case 0:
    case 1:
    case 2: {
      if (workers.empty()) return;
      return world_.crash(*workers[random.below(workers.size())],
                          random.one_in(2) ? Farewell::kOrderly : Farewell::kReset);
    }
    case 3:
    case 4: {
      network.reset_one();
      return;
    }
    case 5: {
      network.stall_one(random.micros(1000, random.one_in(4) ? 12'000'000 : 800'000));
      return;
    }
    case 6: {
      if (!weather_.half_open) return;
      half_opened_ = network.half_open_one() || half_opened_;
      return;
    }
    case 7:
    case 8: {
      if (living.empty()) return;
      return world_.pause(*living[random.below(living.size())],
                          random.micros(100, random.one_in(4) ? 2'000'000 : 100'000));
    }
    case 9: {
      if (!random.one_in(3)) return;
      Process& driver = *drivers_[random.below(drivers_.size())];
      return world_.crash(driver, random.one_in(2) ? Farewell::kOrderly : Farewell::kReset);
    }
    case 10: {
      const auto& machines = cluster_->machines();
      if (!weather_.machines_die || machines.size() < 2) return;
      const std::size_t machine = 1 + random.below(machines.size() - 1);
      if (machines[machine].node->ended) {
        if (!machines[0].node->ended) cluster_->restart(machine);
        return;
      }
      if (random.one_in(3)) return drain(machine);
      return die(machine);
    }
    case 11: {
      if (weather_.head_dies && random.one_in(4)) die(0);
      return;
    }
    case 12: {
      auto head = std::find_if(living.begin(), living.end(),
                               [](const Process* process) { return process->name == "head"; });
      if (!weather_.head_is_replaced || head == living.end()) return;
      return world_.crash(**head, random.one_in(2) ? Farewell::kOrderly : Farewell::kReset);
    }
  }
}

/// Has a driver list what the cluster knows of objects.
void Scenario::check_refs() {
  const auto looker = std::find_if(drivers_.begin(), drivers_.end(), [](const auto& driver) {
    return !driver->ended && !driver->crashed;
  });
  if (looker == drivers_.end() || cluster_->machines()[0].node->ended) return;
  rendezvous_.looker = static_cast<int>(looker - drivers_.begin());
  world_.run_until([&] { return rendezvous_.looked || (*looker)->ended; }, world_.now() + 10s);
  if (!rendezvous_.looked || !rendezvous_.objects.ok()) return;  // its node may be gone
  for (const runtime::ObjectInfo& object : rendezvous_.objects->objects) {
    if (object.owner.empty() && object.borrowers.empty())
      continue;  // a copy of what its node took along: it makes room when room is needed
    world_.fail(
        "object " + object.id.short_hex() + " of " + std::to_string(object.size) +
        " bytes, owned by " + object.owner +
        ", is still there after everything was dropped: " + std::to_string(object.handles) +
        " handles, lent " + std::to_string(object.lent) + ", held " + std::to_string(object.held) +
        ", " + std::to_string(object.borrowers.size()) + " borrowers" +
        (object.borrowers.empty() ? ""
                                  : ", one of them " + object.borrowers[0].name + " with " +
                                        std::to_string(object.borrowers[0].handles) + " handles"));
  }
}

/// Of what the nodes have, only what is in use is reserved. That driver has looked already.
void Scenario::check_account() {
  const bool may_be_left = !rendezvous_.all_removed;
  if (!rendezvous_.looked || !rendezvous_.cluster.ok() || may_be_left) return;
  if (std::string error = account_errors(*rendezvous_.cluster, true); !error.empty())
    world_.fail(error + " after everything was dropped");
}

/// When every driver and every actor has let go of everything, nobody counts anything any more.
void Scenario::check_objects() {
  for (std::size_t i = 0; i < programs_.size(); ++i) {
    if (drivers_[i]->crashed || programs_[i]->objects_held() == 0) continue;
    world_.fail(drivers_[i]->name + " cannot let go of " +
                std::to_string(programs_[i]->objects_held()) + " objects that nobody refers to");
  }
  for (const auto& machine : cluster_->machines()) {
    if (!machine.running) continue;
    const runtime::ObjectStoreStats stats = machine.running->object_stats();
    spills_ += stats.spills;
    if (stats.pins != 0 || stats.orphaned_bytes != 0 || stats.spilled_bytes != 0) {
      world_.fail("node at " + machine.address + " counts " + std::to_string(stats.pins) +
                  " pins, " + std::to_string(stats.orphaned_bytes) + " orphaned bytes and " +
                  std::to_string(stats.spilled_bytes) + " on disk after everything was dropped");
    }
  }
}

Outcome Scenario::run() {
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
  plan();
  Random& random = world_.random();
  const auto machines_up = [this] {
    for (const auto& machine : cluster_->machines()) {
      if (!machine.up) return false;
    }
    return true;
  };
  if (!world_.run_until(machines_up, world_.now() + 30s))
    world_.fail("the cluster does not come up");

  const int drivers = static_cast<int>(1 + random.below(3));
  for (int i = 0; i < drivers; ++i) {
    const std::size_t machine = random.below(cluster_->machines().size());
    DriverPlan plan;
    plan.number = i;
    plan.address = cluster_->machines()[machine].address;
    plan.actors = static_cast<int>(1 + random.below(2));
    plan.operations = static_cast<int>(5 + random.below(25));
    plan.objects = weather_.small_stores || random.one_in(2);
    plan.many_objects = weather_.small_stores;
    plan.gangs = weather_.gangs;
    plan.calm = weather_.every.count() == 0;
    programs_.push_back(std::make_unique<Driver>(world_, ledger_, rendezvous_, plan));
    driver_machines_.push_back(machine);
    drivers_.push_back(world_.start("driver " + std::to_string(i), cluster_->driver_variables(),
                                    [program = programs_.back().get()] { program->run(); }));
  }
  world_.faults = weather_.every.count() > 0;
  schedule_fault();

  const auto all_in = [this](const std::set<int>& numbers) {
    for (std::size_t i = 0; i < drivers_.size(); ++i) {
      if (!drivers_[i]->ended && !numbers.contains(static_cast<int>(i))) return false;
    }
    return true;
  };
  if (!world_.run_until([&] { return all_in(rendezvous_.arrived); }, world_.now() + 600s))
    world_.fail("a driver hangs");
  // A call of a driver that was killed may still be on its way to an actor, and would have it keep
  // something.
  world_.run_until([] { return false; }, world_.now() + 500ms);
  rendezvous_.all_arrived = true;
  if (!world_.run_until([&] { return all_in(rendezvous_.dropped); }, world_.now() + 600s))
    world_.fail("a driver hangs while its actors let go of everything");
  world_.faults = false;
  if (!rendezvous_.heard_all && !half_opened_ && world_.failure().empty())
    world_.fail("an actor does not answer, though nothing is wrong any more");
  const bool quiet = rendezvous_.dropped_all && !half_opened_;
  if (quiet) {
    // A caller whose machine fell silent is given up by TCP first, and then waited for, since it
    // may connect again.
    world_.run_until([] { return false; }, world_.now() + (fell_silent_ ? 30s : 15s));
    if (world_.failure().empty()) check_refs();
    if (world_.failure().empty()) check_account();
    if (world_.failure().empty()) check_objects();
  }
  rendezvous_.released = true;
  if (!world_.run_until([this] { return all_ended(drivers_); }, world_.now() + 60s))
    world_.fail("a driver does not stop");
  // Heads and nodes learn of each other's end by silence, if nothing else says it.
  if (!world_.run_until([this] { return !workers_left(); }, world_.now() + 60s))
    world_.fail("a worker outlives its job");
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
  outcome.spills = spills_;
  return outcome;
}

}  // namespace

Outcome run_seed(std::uint64_t seed, bool trace) {
  Outcome outcome;
  {
    auto scenario = std::make_unique<Scenario>(seed, trace);
    outcome = scenario->run();
  }
  Stage::now = nullptr;
  return outcome;
}

}  // namespace sim
