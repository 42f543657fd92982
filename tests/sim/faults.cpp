#include "faults.h"

#include <algorithm>
#include <utility>

namespace sim {

void Faults::begin(const Weather& weather) {
  weather_ = weather;
  half_opened_ = fell_silent_ = false;
  schedule(++round_);
}

void Faults::add_driver(std::shared_ptr<Process> driver, std::size_t machine) {
  drivers_.push_back({std::move(driver), machine});
}

void Faults::schedule(std::uint64_t round) {
  if (weather_.every.count() == 0) return;
  world_.call_later(world_.random().micros(1, 2 * weather_.every.count()), [this, round] {
    if (!world_.faults || round != round_) return;
    make_one();
    schedule(round);
  });
}

void Faults::die(std::size_t machine) {
  const auto& machines = cluster_.machines();
  if (machines[machine].node->ended) return;
  // Either the node's process alone, or the whole machine, which is not heard of again.
  const bool whole = world_.random().one_in(2);
  fell_silent_ = fell_silent_ || whole;
  for (const Driver& driver : drivers_) {
    if (whole && driver.machine == machine) world_.crash(*driver.process, Farewell::kSilence);
  }
  world_.crash(*machines[machine].node, whole ? Farewell::kSilence : Farewell::kReset);
}

void Faults::drain(std::size_t machine) {
  const auto& drained = cluster_.machines()[machine];
  if (!drained.up || drained.node->crashed) return;
  const auto time =
      world_.random().micros(50'000, world_.random().one_in(2) ? 1'000'000 : 10'000'000);
  drained.running->drain("drill", std::chrono::ceil<std::chrono::milliseconds>(time));
}

void Faults::make_one() {
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
      if (!random.one_in(3) || drivers_.empty()) return;
      Process& driver = *drivers_[random.below(drivers_.size())].process;
      return world_.crash(driver, random.one_in(2) ? Farewell::kOrderly : Farewell::kReset);
    }
    case 10: {
      const auto& machines = cluster_.machines();
      if (!weather_.machines_die || machines.size() < 2) return;
      const std::size_t machine = 1 + random.below(machines.size() - 1);
      if (machines[machine].node->ended) {
        if (!machines[0].node->ended) cluster_.restart(machine);
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

}  // namespace sim
