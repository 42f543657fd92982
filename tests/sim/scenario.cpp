#include "scenario.h"

#include "episode.h"
#include "setting.h"

namespace sim {

namespace {

/// What one seed is about: how large the cluster is, and what goes wrong in it.
Weather plan(Setting& setting) {
  Random& random = setting.world().random();
  Cluster& cluster = setting.cluster();
  Weather weather;
  if (!random.one_in(8)) weather.every = random.micros(1000, random.one_in(2) ? 20'000 : 200'000);
  weather.half_open = random.one_in(3);
  weather.machines_die = random.one_in(3);
  weather.head_dies = random.one_in(12);
  weather.head_is_replaced = random.one_in(2);
  weather.small_stores = random.one_in(4);
  weather.gangs = random.one_in(2);
  const auto machines = 1 + random.below(3);
  if (weather.small_stores) {
    const bool small_disk = weather.every.count() > 0 && random.one_in(3);
    cluster.set_store(1 << 20, small_disk ? 512 << 10 : 64 << 20);
    setting.world().disk_fails = random.one_in(2) ? 2 + random.below(10) : 0;
  }
  for (std::uint64_t i = 0; i < machines; ++i) cluster.add_machine(8);
  return weather;
}

}  // namespace

Outcome run_seed(std::uint64_t seed, bool trace) {
  Setting setting(seed, trace);
  const Weather weather = plan(setting);
  if (!setting.come_up()) setting.world().fail("the cluster does not come up");
  Episode episode(setting.world(), setting.ledger(), setting.cluster(), setting.faults(),
                  {weather.small_stores, weather.gangs, weather.every.count() == 0});
  episode.run(weather);
  Outcome outcome = setting.finish();
  outcome.spills = episode.spills();
  return outcome;
}

}  // namespace sim
