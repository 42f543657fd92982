#include "days.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "episode.h"
#include "setting.h"

namespace sim {

namespace {

/// What is there while no program uses the cluster.
struct Standing {
  std::size_t alarms = 0;
  std::size_t connections = 0;
};

class Days {
 public:
  Days(std::uint64_t seed, bool trace) : setting_(seed, trace) {}

  Outcome run(std::chrono::hours hours);

 private:
  static constexpr std::uint64_t kMachines = 3;
  // Of the head: a thousand of the last actors (three entries each), jobs, requests and departures.
  static constexpr std::size_t kEntriesMax = 8'000;
  // Timers and connections that are there for a moment.
  static constexpr std::size_t kPassingMax = 12;
  static constexpr int kEpisodesBefore = 5;

  Weather some_weather();
  void live();
  /// Now and then something goes wrong unobserved.
  void rest();
  void repair();
  void look();

  Setting setting_;
  World& world_ = setting_.world();
  std::unique_ptr<Episode> episode_;
  int episodes_ = 0;
  Standing most_;  // of the first episodes
  std::uint64_t spills_ = 0;
};

Weather Days::some_weather() {
  Random& random = world_.random();
  Weather weather;
  if (!random.one_in(8)) weather.every = random.micros(2000, random.one_in(2) ? 50'000 : 500'000);
  weather.machines_die = random.one_in(3);
  weather.head_is_replaced = random.one_in(2);
  weather.gangs = random.one_in(2);
  return weather;
}

void Days::live() {
  const Weather weather = some_weather();
  episode_ = std::make_unique<Episode>(
      world_, setting_.ledger(), setting_.cluster(), setting_.faults(),
      Episode::Plan{weather.small_stores, weather.gangs, weather.every.count() == 0});
  episode_->run(weather);
  spills_ += episode_->spills();
  ++episodes_;
}

void Days::rest() {
  Random& random = world_.random();
  const runtime::Deadline until = world_.now() + random.micros(60'000'000, 2'400'000'000);
  Weather weather;
  weather.every = 120s;
  weather.machines_die = random.one_in(2);
  weather.head_is_replaced = true;
  world_.faults = random.one_in(2);
  setting_.faults().begin(weather);
  world_.run_until([this] { return !world_.failure().empty(); }, until);
  world_.faults = false;
}

/// Machines that died are started again, and what their ends left has time to go.
void Days::repair() {
  Cluster& cluster = setting_.cluster();
  const auto machines = cluster.machines().size();
  const runtime::Deadline patience = world_.now() + 180s;
  for (bool whole = false; !whole && world_.now() < patience;) {
    world_.run_until([] { return false; }, world_.now() + 15s);
    whole = true;
    for (std::size_t machine = 0; machine < machines; ++machine) {
      whole = whole && cluster.machines()[machine].up;
      if (cluster.machines()[machine].node->ended) cluster.restart(machine);
    }
  }
  if (!setting_.come_up()) world_.fail("the cluster does not come up again");
  world_.run_until([] { return false; }, world_.now() + 60s);
}

void Days::look() {
  const Standing now{world_.alarms(), world_.network().connections()};
  world_.note("standing: " + std::to_string(now.alarms) + " timers, " +
              std::to_string(now.connections) + " connections, " +
              std::to_string(setting_.journal().size()) + " entries");
  if (episodes_ <= kEpisodesBefore) {
    most_.alarms = std::max(most_.alarms, now.alarms);
    most_.connections = std::max(most_.connections, now.connections);
    return;
  }
  if (now.alarms > most_.alarms + kPassingMax)
    world_.fail("timers gather: " + std::to_string(most_.alarms) + " at first, now " +
                std::to_string(now.alarms));
  if (now.connections > most_.connections + kPassingMax)
    world_.fail("connections gather: " + std::to_string(most_.connections) + " at first, now " +
                std::to_string(now.connections) + ": " + world_.network().describe());
  if (setting_.journal().size() > kEntriesMax)
    world_.fail("the journal has " + std::to_string(setting_.journal().size()) + " entries");
}

Outcome Days::run(std::chrono::hours hours) {
  for (std::uint64_t i = 0; i < kMachines; ++i) setting_.cluster().add_machine(8);
  if (!setting_.come_up()) world_.fail("the cluster does not come up");
  while (world_.age() < hours && world_.failure().empty()) {
    live();
    if (world_.failure().empty()) repair();
    if (world_.failure().empty()) look();
    if (world_.failure().empty()) rest();
    if (world_.failure().empty()) repair();
  }
  Outcome outcome = setting_.finish();
  outcome.spills = spills_;
  std::printf(
      "%.1f hours: %d episodes, %llu steps, %zu calls; %zu timers and %zu connections at rest; "
      "%zu journal entries\n",
      outcome.seconds / 3600, episodes_, static_cast<unsigned long long>(outcome.steps),
      outcome.calls, most_.alarms, most_.connections, setting_.journal().size());
  return outcome;
}

}  // namespace

Outcome run_hours(std::uint64_t seed, int hours, bool trace) {
  return Days(seed, trace).run(std::chrono::hours(hours));
}

}  // namespace sim
