// Runs a test body under every instruction set that the machine has.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "rl/kernel/isa.h"

namespace rl::kernel {

template <class Body>
void for_each_isa(Body&& body) {
  const Isa before = current_isa();
  for (Isa isa : supported_isas()) {
    SCOPED_TRACE(std::string(to_string(isa)));
    set_isa(isa);
    body();
  }
  set_isa(before);
}

}  // namespace rl::kernel
