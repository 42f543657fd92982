// A driver built against the installed package: actors in their own processes, calls, an array
// through shared memory.
#include <cstdio>
#include <vector>

#include "runtime/core/version.h"
#include "runtime/coroutine.h"
#include "runtime/runtime.h"

struct Summer {
  double sum(runtime::ArrayView<float> values) {
    double total = 0;
    for (float value : values) total += value;
    return total;
  }
};

runtime::Status driver_main(runtime::Runtime& rt) {
  auto summers = rt.spawn_group<Summer>(2, {.name = "summer"});
  if (!summers.ok()) return summers.status();
  auto values = rt.put(std::vector<float>(1 << 20, 0.5F));
  if (!values.ok()) return values.status();
  auto sums = rt.objects().gather(summers->call(&Summer::sum, *values));
  if (!sums.ok()) return sums.status();
  std::printf("release %s sums %.0f %.0f\n", runtime::kRelease, (*sums)[0], (*sums)[1]);
  return {};
}

int main(int argc, char** argv) {
  runtime::Runtime rt(argc, argv);
  rt.register_actor<Summer>("Summer", &Summer::sum);
  return rt.run(driver_main);
}
