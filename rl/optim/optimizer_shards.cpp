#include "rl/optim/optimizer_shards.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "rl/mesh/deal.h"
#include "rl/optim/home_exchange.h"
#include "rl/optim/optimizer.h"

namespace rl {

using runtime::Result;
using runtime::Status;

std::vector<ArenaRange> moment_homes(std::int64_t elements, int ranks) {
  const std::int64_t chunks = (elements + kNormChunk - 1) / kNormChunk;
  std::vector<ArenaRange> homes;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const auto dealt = deal<std::int64_t>(chunks, ranks, rank);
    homes.push_back(
        {std::min(dealt.begin * kNormChunk, elements), std::min(dealt.end * kNormChunk, elements)});
  }
  return homes;
}

OptimizerShards::OptimizerShards(Communicator& communicator, std::int64_t elements, ZeroLevel level,
                                 const GradientCompressionOptions& compression)
    : communicator_(communicator), home_({{0, elements}}) {
  if (communicator.size() == 1) return;
  if (level != ZeroLevel::kNone) {
    ranges_ = moment_homes(elements, communicator.size());
    for (const ArenaRange& range : ranges_) homes_.emplace_back(RangeSet{range});
    home_ = homes_[static_cast<std::size_t>(communicator.rank())];
  }
  if (std::unique_ptr<GradientCodec> codec = make_gradient_codec(compression))
    compressed_ =
        std::make_unique<CompressedSum>(communicator, std::move(codec), elements, ranges_);
}

ArenaRange OptimizerShards::mine() const {
  return is_sharded() ? ranges_[static_cast<std::size_t>(communicator_.rank())]
                      : ArenaRange{0, home_.elements()};
}

Status OptimizerShards::add_round(std::span<float> gradients, std::span<const std::uint8_t> adds,
                                  bool last) {
  if (compressed_) return runtime::internal_error("compressed gradients are summed in one round");
  const Status added =
      communicator_.reduce_round(gradients, rounds_, adds, last, ranges_, "gradients");
  is_summed_ = last && added.ok();
  return added;
}

Status OptimizerShards::sum(std::span<float> gradients) {
  if (compressed_) return compressed_->sum(gradients);
  if (!is_sharded()) return communicator_.all_reduce_sum(gradients, "gradients");
  const std::vector<std::uint8_t> all(ranges_.size(), 1);
  return communicator_.reduce_round(gradients, rounds_, all, /*last=*/true, ranges_, "gradients");
}

Result<double> OptimizerShards::norm(kernel::ThreadPool& pool, std::span<const float> gradients) {
  if (!is_sharded()) return l2_norm(pool, gradients);
  return norm_of_homes(communicator_, pool, homes_, part_of(gradients, mine()));
}

Status OptimizerShards::step(Optimizer& optimizer, kernel::ThreadPool& pool,
                             std::span<float> weights, std::span<const float> gradients,
                             float learning_rate, float gradient_scale) {
  const Status stepped = optimizer.step(pool, part_of(weights, mine()), part_of(gradients, mine()),
                                        learning_rate, gradient_scale);
  if (!stepped.ok() || !is_sharded()) return stepped;
  return communicator_.gather_homes(weights, ranges_, "weights");
}

void OptimizerShards::forget_residual() {
  if (compressed_) compressed_->forget_residual();
}

Status OptimizerShards::collect(std::span<const float> of_home, std::span<float> whole) {
  return collect_homes(communicator_, homes_, of_home, whole);
}

}  // namespace rl
