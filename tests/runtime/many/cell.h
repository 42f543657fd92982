// The smallest actor that has a state.
#pragma once

#include "runtime/runtime.h"

namespace runtime::test {

class Cell {
 public:
  explicit Cell(int value) : value_(value) {}
  int add(int n) { return value_ += n; }

 private:
  int value_;
};

inline void register_cells(Runtime& rt) { rt.register_actor<Cell>("Cell", &Cell::add); }

}  // namespace runtime::test
