// Output of a benchmark's figures.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/support/machine.h"

namespace bench {

/// One line a figure; as JSON one object, with the machine and the commit.
inline void print_figures(nlohmann::ordered_json figures, bool as_json) {
  if (as_json) {
    figures["machine"] = machine();
    figures["commit"] = commit();
    std::printf("%s\n", figures.dump().c_str());
    return;
  }
  for (const auto& [name, value] : figures.items())
    std::printf("%-30s %.6g\n", name.c_str(), value.get<double>());
}

}  // namespace bench
