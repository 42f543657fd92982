// The smallest Starling program: an actor in its own process that counts.
//
//   build/release/bin/counter                            starts a cluster for itself
//   starling start --head && build/release/bin/counter   uses the one that runs
#include <cstdio>

#include "runtime/runtime.h"

struct Counter {
  int add(int n) { return value += n; }
  int total() const { return value; }
  int value = 0;
};

runtime::Status driver_main(runtime::Runtime& rt) {
  auto counter = rt.spawn<Counter>({.name = "counter"});
  if (!counter.ok()) return counter.status();
  for (int i = 1; i <= 10; ++i) counter->call(&Counter::add, i);  // does not wait
  auto total = rt.get(counter->call(&Counter::total));
  if (!total.ok()) return total.status();
  std::printf("total: %d\n", *total);
  return {};
}

int main(int argc, char** argv) {
  runtime::Runtime rt(argc, argv);
  rt.register_actor<Counter>("Counter", &Counter::add, &Counter::total);
  return rt.run(driver_main);  // in a worker process this serves actors and never calls driver_main
}
