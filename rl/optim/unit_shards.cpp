#include "rl/optim/unit_shards.h"

#include <cstddef>

#include "rl/mesh/unit_homes.h"
#include "rl/optim/home_exchange.h"
#include "rl/optim/optimizer.h"

namespace rl {

using runtime::Result;
using runtime::Status;

std::vector<RangeSet> homes_of(std::span<const ArenaUnit> units, std::int64_t elements, int ranks,
                               int group) {
  std::vector<RangeSet> own;
  for (const ArenaUnit& unit : units) own.push_back(unit.own);
  return unit_homes(own, elements, kNormChunk, ranks, group);
}

UnitShards::UnitShards(Communicator& communicator, Transformer& model, UnitWeights& weights,
                       std::span<const ArenaUnit> units, std::span<const RangeSet> homes,
                       const TeamParts& teams)
    : communicator_(communicator),
      weights_(weights),
      sums_(communicator, model, units, homes, teams) {
  for (const RangeSet& home : homes) homes_.emplace_back(home);
}

const PackedRanges& UnitShards::home() const {
  return homes_[static_cast<std::size_t>(communicator_.rank())];
}

// The round's last pass has added it up.
Status UnitShards::add_round(std::span<float> /*gradients*/, std::span<const std::uint8_t> /*adds*/,
                             bool last) {
  if (!last || sums_.is_complete()) return {};
  return runtime::internal_error("the last round of a step had no pass to add its gradients up");
}

Status UnitShards::sum(std::span<float> /*gradients*/) {
  return runtime::internal_error("a step had no pass to add its gradients up");
}

Result<double> UnitShards::norm(kernel::ThreadPool& pool, std::span<const float> /*gradients*/) {
  return norm_of_homes(communicator_, pool, homes_, sums_.sum());
}

Status UnitShards::step(Optimizer& optimizer, kernel::ThreadPool& pool,
                        std::span<float> /*weights*/, std::span<const float> /*gradients*/,
                        float learning_rate, float gradient_scale) {
  const Status stepped =
      optimizer.step(pool, weights_.home(), sums_.sum(), learning_rate, gradient_scale);
  return stepped.ok() ? weights_.spread() : stepped;
}

Status UnitShards::collect(std::span<const float> of_home, std::span<float> whole) {
  return collect_homes(communicator_, homes_, of_home, whole);
}

}  // namespace rl
