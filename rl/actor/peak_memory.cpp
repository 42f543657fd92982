#include "rl/actor/peak_memory.h"

#include <utility>

#include "rl/metrics/process_memory.h"
#include "rl/model/device.h"

namespace rl {

runtime::Result<Metrics> with_peaks(runtime::Result<Metrics> metrics, const Transformer& model) {
  runtime::Result<Metrics> with = with_peak_memory(std::move(metrics));
  if (!with.ok()) return with;
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  if (const auto bytes = peak_device_bytes(model.parameters().arena().device()))
    (*with)["perf/max_memory_reserved_gb"] = static_cast<double>(*bytes) / kGib;
  return with;
}

}  // namespace rl
