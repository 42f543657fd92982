// Keys: a simulated driver's sums and claims, which the head must neither lose nor count twice.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/runtime.h"
#include "world.h"

namespace sim {

class Keys {
 public:
  Keys(World& world, int driver) : world_(world), driver_(driver) {}

  /// Adds to a sum that is this driver's own, or makes a key and deletes it twice.
  void use(runtime::Runtime& rt);

 private:
  void add(runtime::Runtime& rt);
  void claim(runtime::Runtime& rt);
  std::string name(const char* kind) const { return kind + std::to_string(driver_); }

  World& world_;
  const int driver_;
  std::int64_t sum_ = 0;      // the last one that it was told
  std::int64_t unknown_ = 0;  // additions without an answer, which may still happen
  std::uint64_t claims_ = 0;
};

}  // namespace sim
