#include "episode.h"

#include <algorithm>

#include "head_main.h"

namespace sim {

bool Episode::all_in(const std::set<int>& numbers) const {
  for (std::size_t i = 0; i < drivers_.size(); ++i) {
    if (!drivers_[i]->ended && !numbers.contains(static_cast<int>(i))) return false;
  }
  return true;
}

bool Episode::all_ended() const {
  return std::all_of(drivers_.begin(), drivers_.end(),
                     [](const auto& driver) { return driver->ended; });
}

bool Episode::workers_left() const {
  for (const auto& process : world_.processes()) {
    if (!process->worker.is_none() && !process->ended) return true;
  }
  return false;
}

void Episode::start_drivers() {
  Random& random = world_.random();
  const int drivers = static_cast<int>(1 + random.below(3));
  for (int i = 0; i < drivers; ++i) {
    const std::size_t machine = random.below(cluster_.machines().size());
    DriverPlan plan;
    plan.number = i;
    plan.address = cluster_.machines()[machine].address;
    plan.actors = static_cast<int>(1 + random.below(2));
    plan.operations = static_cast<int>(5 + random.below(25));
    plan.objects = plan_.small_stores || random.one_in(2);
    plan.many_objects = plan_.small_stores;
    plan.gangs = plan_.gangs;
    plan.calm = plan_.calm;
    programs_.push_back(std::make_unique<Driver>(world_, ledger_, rendezvous_, plan));
    drivers_.push_back(world_.start("driver " + std::to_string(i), cluster_.driver_variables(),
                                    [program = programs_.back().get()] { program->run(); }));
    faults_.add_driver(drivers_.back(), machine);
  }
}

void Episode::work() {
  if (!world_.run_until([&] { return all_in(rendezvous_.arrived); }, world_.now() + 600s))
    world_.fail("a driver hangs");
  // A call of a driver that was killed may still be on its way to an actor, and would have it keep
  // something.
  world_.run_until([] { return false; }, world_.now() + 500ms);
  rendezvous_.all_arrived = true;
  if (!world_.run_until([&] { return all_in(rendezvous_.dropped); }, world_.now() + 600s))
    world_.fail("a driver hangs while its actors let go of everything");
}

void Episode::run(const Weather& weather) {
  start_drivers();
  world_.faults = weather.every.count() > 0;
  faults_.begin(weather);
  work();
  world_.faults = false;
  check_quiet();
  faults_.forget_drivers();
  rendezvous_.released = true;
  if (!world_.run_until([this] { return all_ended(); }, world_.now() + 60s))
    world_.fail("a driver does not stop");
  // Heads and nodes learn of each other's end by silence, if nothing else says it.
  if (!world_.run_until([this] { return !workers_left(); }, world_.now() + 60s))
    world_.fail("a worker outlives its job");
}

void Episode::check_quiet() {
  if (!rendezvous_.heard_all && !faults_.half_opened() && world_.failure().empty())
    world_.fail("an actor does not answer, though nothing is wrong any more");
  if (!rendezvous_.dropped_all || faults_.half_opened()) return;
  // A caller whose machine fell silent is given up by TCP first, and then waited for, since it
  // may connect again.
  world_.run_until([] { return false; }, world_.now() + (faults_.fell_silent() ? 30s : 15s));
  if (world_.failure().empty()) check_refs();
  if (world_.failure().empty()) check_account();
  if (world_.failure().empty()) check_objects();
}

/// Has a driver list what the cluster knows of objects.
void Episode::check_refs() {
  const auto looker = std::find_if(drivers_.begin(), drivers_.end(), [](const auto& driver) {
    return !driver->ended && !driver->crashed;
  });
  if (looker == drivers_.end() || cluster_.machines()[0].node->ended) return;
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
void Episode::check_account() {
  const bool may_be_left = !rendezvous_.all_removed;
  if (!rendezvous_.looked || !rendezvous_.cluster.ok() || may_be_left) return;
  if (std::string error = account_errors(*rendezvous_.cluster, true); !error.empty())
    world_.fail(error + " after everything was dropped");
}

/// When every driver and every actor has let go of everything, no process counts anything any more.
void Episode::check_objects() {
  for (std::size_t i = 0; i < programs_.size(); ++i) {
    if (drivers_[i]->crashed || programs_[i]->objects_held() == 0) continue;
    world_.fail(drivers_[i]->name + " cannot let go of " +
                std::to_string(programs_[i]->objects_held()) + " objects without a reference");
  }
  for (const auto& machine : cluster_.machines()) {
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

}  // namespace sim
