#include "rl/kernel/softmax.h"

#include <cmath>

#include "rl/kernel/kernel_table.h"
#include "runtime/core/check.h"

namespace rl::kernel {

void log_softmax_gather(ThreadPool& pool, const float* logits, std::int64_t rows,
                        std::int64_t vocab, std::int64_t stride, float temperature,
                        const std::int32_t* targets, const LogSoftmaxOutputs& outputs) {
  CHECK(temperature > 0.0F);
  const auto sums_kernel = kernels().softmax_sums;
  const std::int64_t row_stride = stride == 0 ? vocab : stride;
  const float scale = 1.0F / temperature;
  pool.parallel_for(rows, 1 + (8 << 10) / vocab, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const float* row = logits + r * row_stride;
      const SoftmaxSums sums = sums_kernel(row, vocab, scale);
      const double log_sum =
          std::log(double{sums.sum});  // double: the three results below are rounded once
      if (outputs.logprob != nullptr) {
        const bool wanted = targets != nullptr && targets[r] >= 0;
        const double centred =
            wanted ? std::fma(double{row[targets[r]]}, double{scale}, -double{sums.maximum}) : 0.0;
        outputs.logprob[r] = wanted ? static_cast<float>(centred - log_sum) : 0.0F;
      }
      if (outputs.log_normalizer != nullptr)
        outputs.log_normalizer[r] = static_cast<float>(double{sums.maximum} + log_sum);
      if (outputs.entropy != nullptr)
        outputs.entropy[r] = static_cast<float>(log_sum - double{sums.weighted} / double{sums.sum});
    }
  });
}

}  // namespace rl::kernel
