// End of a benchmark when something that it needs fails.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "runtime/core/result.h"

namespace bench {

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "error: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T take(runtime::Result<T> result) {
  if (!result.ok()) fail(result.status().to_string());
  return *std::move(result);
}

}  // namespace bench
