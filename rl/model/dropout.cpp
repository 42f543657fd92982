#include "rl/model/dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>

#include "rl/kernel/philox.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr std::int64_t kWords = 4;        // of one call of philox()
constexpr std::int64_t kGrain = 1 << 12;  // calls that are worth a thread
constexpr double kWordValues = 0x1.0p32;

// 1 for what is kept, of elements that have `before` others before them.
at::Tensor kept_elements(kernel::ThreadPool& pool, at::IntArrayRef sizes, std::int64_t before,
                         double share, const DropoutPass& pass, std::uint32_t module) {
  at::Tensor kept = at::empty(sizes, at::TensorOptions().dtype(at::kByte));
  std::uint8_t* const out = kept.mutable_data_ptr<std::uint8_t>();
  const std::int64_t end_element = before + kept.numel();
  const std::int64_t first_call = before / kWords;
  const std::int64_t end_call = (end_element + kWords - 1) / kWords;
  CHECK(end_call < std::int64_t{1} << 32);
  const auto dropped_below = static_cast<std::uint32_t>(share * kWordValues);
  const std::array<std::uint32_t, 2> key{
      static_cast<std::uint32_t>(pass.seed),
      static_cast<std::uint32_t>(pass.seed >> 32) ^ pass.rank * 0x9E3779B9U};
  pool.parallel_for(end_call - first_call, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t call = first_call + begin; call < first_call + end; ++call) {
      const auto words =
          philox({static_cast<std::uint32_t>(call), module, static_cast<std::uint32_t>(pass.index),
                  static_cast<std::uint32_t>(pass.index >> 32)},
                 key);
      const std::int64_t last = std::min(end_element, (call + 1) * kWords);
      for (std::int64_t i = std::max(before, call * kWords); i < last; ++i)
        out[i - before] = words[static_cast<std::size_t>(i % kWords)] >= dropped_below ? 1 : 0;
    }
  });
  return kept;
}

}  // namespace

at::Tensor dropped_out(kernel::ThreadPool& pool, const at::Tensor& x, double share,
                       const DropoutPass& pass, std::uint32_t module, std::int64_t first_row) {
  CHECK(share >= 0.0 && share < 1.0);
  at::Tensor factors;
  {
    c10::AutoGradMode off(false);
    factors = kept_elements(pool, x.sizes(), first_row * x.size(1), share, pass, module)
                  .to(x.device())
                  .to(x.scalar_type())
                  .div_(1.0 - share);
  }
  return x * factors;
}

}  // namespace rl
