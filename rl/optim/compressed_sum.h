// CompressedSum: the sum of all ranks' gradients, by codes that leave something for later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/comm/sum_plan.h"
#include "rl/mesh/arena_range.h"
#include "rl/optim/gradient_codec.h"
#include "runtime/core/result.h"

namespace rl {

/// Error feedback (Seide et al. 2014; Karimireddy et al. 2019, arXiv:1901.09847): what a code
/// leaves out of a gradient is added to the next one. All other ranks send a rank the codes of its
/// slice of a bucket. It adds them in the order of ranks to its own gradient. Unless it alone needs
/// the sum, it sends the sum to all in half precision, and keeps the rest of that as well. Tang et
/// al. 2019, "DoubleSqueeze", arXiv:1905.05957. Every rank ends with the same bits; they depend on
/// the number of ranks. Borrows the communicator. All ranks make the same calls; errors:
/// Communicator's.
class CompressedSum {
 public:
  struct Options {
    std::size_t bucket_bytes = Communicator::Options().bucket_bytes;  // of values that travel
  };

  /// Of gradients of N elements, which `codec` encodes. With `homes` each rank ends with the
  /// sum of its homes alone, else with all of it.
  CompressedSum(Communicator& communicator, std::unique_ptr<GradientCodec> codec,
                std::int64_t elements, std::span<const ArenaRange> homes, const Options& options);
  CompressedSum(Communicator& communicator, std::unique_ptr<GradientCodec> codec,
                std::int64_t elements, std::span<const ArenaRange> homes)
      : CompressedSum(communicator, std::move(codec), elements, homes, Options()) {}
  CompressedSum(const CompressedSum&) = delete;
  CompressedSum& operator=(const CompressedSum&) = delete;

  /// Where some rank has a gradient that is not finite, all end with NaN. The residuals of earlier
  /// gradients stay as they were: as if there had been no such step. Where a sum of finite
  /// gradients overflows, the step is dropped as well, but what was sent of residuals is lost.
  runtime::Status sum(std::span<float> gradients);

  /// What this rank has yet to send: for its slices from sums, for others' from its gradients.
  std::span<const float> residual() const { return residual_; }
  void forget_residual();

 private:
  struct Bucket {
    std::size_t index = 0;
    std::vector<std::vector<std::byte>> sent;      // by rank
    std::vector<std::vector<std::byte>> received;  // by rank
    std::vector<std::byte> sum_code;
    Transfer scattered;
    Transfer gathered;
  };

  std::span<float> slice_of(std::span<float> values, const Bucket& bucket, int rank) const;
  runtime::Result<bool> all_finite(std::span<const float> gradients);
  void scatter(std::span<const float> gradients, Bucket& bucket);
  runtime::Status add(std::span<float> gradients, Bucket& bucket);
  void gather(std::span<float> mine, Bucket& bucket);
  runtime::Status finish(std::span<float> gradients, Bucket& bucket);

  Communicator& communicator_;
  const std::unique_ptr<GradientCodec> codec_;
  const Fp16Codec sum_codec_;
  const SumPlan plan_;
  const bool gathers_;
  std::vector<float> residual_;
};

}  // namespace rl
