#include "rl/mesh/layout.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

Status check_mesh(const AddressSpace& space, const ModelUnits& units, const Mesh& mesh) {
  const int layers = units.last_layer - units.first_layer;
  if (mesh.size(Axis::kStage) > layers)
    return runtime::invalid_argument(std::to_string(mesh.size(Axis::kStage)) +
                                     " pipeline stages cannot share " + std::to_string(layers) +
                                     " layers");
  if (space.blocks() % mesh.size(Axis::kTensor) != 0)
    return runtime::invalid_argument("the model's heads make " + std::to_string(space.blocks()) +
                                     " blocks, which " + std::to_string(mesh.size(Axis::kTensor)) +
                                     " tensor-parallel ranks do not divide");
  const int ranks = mesh.shape().experts;
  if (ranks == 1) return {};
  bool any = false;
  for (int unit = 0; unit < space.units(); ++unit) {
    if (space.experts(unit) == 0) continue;
    any = true;
    if (space.experts(unit) < ranks)
      return runtime::invalid_argument(std::to_string(ranks) +
                                       " expert-parallel ranks cannot share " +
                                       std::to_string(space.experts(unit)) + " experts");
  }
  if (!any) return runtime::invalid_argument("expert parallelism of a model without experts");
  return {};
}

// What a rank computes with, in three kinds that are shared by different ranks.
struct UnitRanges {
  ArenaRange uncut;
  ArenaRange blocks;
  ArenaRange experts;
};

class LayoutMaker {
 public:
  LayoutMaker(const AddressSpace& space, const ModelUnits& units, const Mesh& mesh, ZeroLevel level)
      : space_(space), units_(units), mesh_(mesh), level_(level) {}

  Layout run() const {
    Layout layout;
    for (int rank = 0; rank < mesh_.world(); ++rank) {
      std::vector<ArenaRange> used, owned;
      for (int unit = 0; unit < space_.units(); ++unit) {
        if (!in_stage(unit, mesh_.of(rank)[Axis::kStage])) continue;
        const UnitRanges ranges = ranges_of(unit, rank);
        for (const ArenaRange& range : {ranges.uncut, ranges.blocks, ranges.experts})
          used.push_back(range);
        // Each unit for itself, so that gathering one asks every owner for its part.
        add_share({ranges.uncut, ranges.blocks}, shard_peers(rank), rank, owned);
        add_share({ranges.experts}, expert_holders(rank), rank, owned);
      }
      const RangeSet all(std::move(used));
      const RangeSet share(std::move(owned));
      layout.used.push_back(all);
      layout.weights_home.push_back(level_ >= ZeroLevel::kWeights ? share : all);
      layout.gradients_home.push_back(level_ >= ZeroLevel::kGradients ? share : all);
      layout.moments_home.push_back(level_ >= ZeroLevel::kMoments ? share : all);
    }
    return layout;
  }

 private:
  bool in_stage(int unit, int stage) const {
    const int last = mesh_.size(Axis::kStage) - 1;
    if (unit < units_.first_layer) return stage == 0 || (units_.tied && stage == last);
    if (unit >= units_.last_layer) return stage == last;
    const Dealt<int> layers = stage_layers(units_, mesh_, stage);
    return unit >= layers.begin && unit < layers.end;
  }

  UnitRanges ranges_of(int unit, int rank) const {
    const int tensor = mesh_.of(rank)[Axis::kTensor];
    const int each = space_.blocks() / mesh_.size(Axis::kTensor);
    UnitRanges ranges;
    ranges.uncut = space_.uncut(unit);
    ranges.blocks = {space_.block(unit, tensor * each).begin,
                     space_.block(unit, (tensor + 1) * each - 1).end};
    const Dealt<int> experts =
        deal(space_.experts(unit), mesh_.shape().experts, mesh_.expert_rank(rank));
    if (experts.size() > 0)
      ranges.experts = {space_.expert(unit, experts.begin).begin,
                        space_.expert(unit, experts.end - 1).end};
    return ranges;
  }

  // Ranks that learn from different rows with the same weights, within a replica.
  std::vector<int> shard_peers(int rank) const {
    return mesh_.peers(rank, {Axis::kShard, Axis::kSequence});
  }

  // Of these, those with the same experts.
  std::vector<int> expert_holders(int rank) const {
    std::vector<int> holders = shard_peers(rank);
    std::erase_if(holders,
                  [&](int peer) { return mesh_.expert_rank(peer) != mesh_.expert_rank(rank); });
    return holders;
  }

  static void add_share(std::initializer_list<ArenaRange> ranges, const std::vector<int>& holders,
                        int rank, std::vector<ArenaRange>& owned) {
    const auto place = std::ranges::find(holders, rank) - holders.begin();
    const RangeSet share =
        RangeSet(ranges).part(static_cast<std::int64_t>(holders.size()), place, kPageElements);
    owned.insert(owned.end(), share.ranges().begin(), share.ranges().end());
  }

  const AddressSpace& space_;
  const ModelUnits& units_;
  const Mesh& mesh_;
  const ZeroLevel level_;
};

}  // namespace

Dealt<int> stage_layers(const ModelUnits& units, const Mesh& mesh, int stage) {
  const Dealt<int> dealt =
      deal(units.last_layer - units.first_layer, mesh.size(Axis::kStage), stage);
  return {units.first_layer + dealt.begin, units.first_layer + dealt.end};
}

Result<Layout> layout_of(const AddressSpace& space, const ModelUnits& units, const Mesh& mesh,
                         ZeroLevel level) {
  if (Status fits = check_mesh(space, units, mesh); !fits.ok()) return fits;
  return LayoutMaker(space, units, mesh, level).run();
}

}  // namespace rl
