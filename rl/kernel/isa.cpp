#include "rl/kernel/isa.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "rl/kernel/kernel_table.h"
#include "runtime/core/check.h"

namespace rl::kernel {
namespace {

const KernelTable& table_of(Isa isa) {
  switch (isa) {
    case Isa::kAvx512: return avx512_kernels();
    case Isa::kAvx2: return avx2_kernels();
    case Isa::kPortable: break;
  }
  return portable_kernels();
}

Isa initial_isa() {
  const std::vector<Isa> supported = supported_isas();
  if (const char* wanted = std::getenv("STARLING_ISA")) {
    for (Isa isa : supported) {
      if (to_string(isa) == wanted) return isa;
    }
  }
  return supported.back();
}

std::atomic<Isa>& chosen_isa() {
  static std::atomic<Isa> isa{initial_isa()};
  return isa;
}

}  // namespace

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::kAvx512: return "avx512";
    case Isa::kAvx2: return "avx2";
    case Isa::kPortable: break;
  }
  return "portable";
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas{Isa::kPortable};
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2) isas.push_back(Isa::kAvx2);
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) {
    isas.push_back(Isa::kAvx512);
  }
#endif
  return isas;
}

Isa current_isa() { return chosen_isa().load(std::memory_order_relaxed); }

void set_isa(Isa isa) {
  const std::vector<Isa> supported = supported_isas();
  CHECK(std::find(supported.begin(), supported.end(), isa) != supported.end());
  chosen_isa().store(isa, std::memory_order_relaxed);
}

const KernelTable& kernels() { return table_of(current_isa()); }

}  // namespace rl::kernel
