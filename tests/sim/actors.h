// The actors of simulated programs: they write down what runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/runtime.h"

namespace sim {

class Ledger;
class World;

/// Where actors find the world they are in. One at a time, in one thread.
struct Stage {
  World* world = nullptr;
  Ledger* ledger = nullptr;
  static inline Stage* now = nullptr;
};

/// Plain functions, run as tasks.
std::uint64_t task_note(std::uint64_t call, std::uint32_t micros);
/// Its process ends in the middle of it.
std::uint64_t task_crash(std::uint64_t call);
std::vector<std::uint8_t> task_make(std::uint64_t call, std::uint32_t size);

class Witness {
 public:
  Witness(runtime::Runtime& rt, std::string name);

  std::uint64_t note(std::uint64_t call);
  /// Takes that long.
  std::uint64_t linger(std::uint64_t call, std::uint32_t micros);
  /// The same in the group "side".
  std::uint64_t aside(std::uint64_t call, std::uint32_t micros);
  runtime::Status refuse(std::uint64_t call);
  void blow_up(std::uint64_t call);
  /// Its process ends in the middle of it.
  std::uint64_t crash(std::uint64_t call);
  /// Calls another one and waits for that; then both numbers have run.
  runtime::Result<std::uint64_t> relay(std::uint64_t call, runtime::ActorHandle<Witness> other,
                                       std::uint64_t inner);

  /// Bytes that can be checked, small or in shared memory.
  std::vector<std::uint8_t> make(std::uint64_t call, std::uint32_t size);
  /// Sum of an object.
  std::uint64_t sum(std::uint64_t call, std::vector<std::uint8_t> bytes);
  /// Keeps a reference until it is told to drop it.
  std::uint64_t keep(std::uint64_t call, runtime::ObjectRef<std::vector<std::uint8_t>> ref);
  runtime::Result<std::uint64_t> sum_kept(std::uint64_t call);
  std::uint64_t drop(std::uint64_t call);
  runtime::Result<runtime::ObjectRef<std::vector<std::uint8_t>>> give(std::uint64_t call);

  /// And the tasks.
  static void register_in(runtime::Runtime& rt);
  static std::vector<std::uint8_t> pattern(std::uint64_t call, std::uint32_t size);
  static std::uint64_t sum_of(const std::vector<std::uint8_t>& bytes);

 private:
  runtime::Runtime* rt_ = nullptr;
  std::string name_;
  runtime::ObjectRef<std::vector<std::uint8_t>> kept_;
};

}  // namespace sim
