#include "rl/model/arena_units.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "rl/model/address_plan.h"
#include "rl/model/family.h"
#include "rl/model/model_plan.h"
#include "runtime/core/check.h"

namespace rl {

std::vector<ArenaUnit> arena_units(const ModelConfig& config,
                                   std::span<const ParameterSpec> specs) {
  const ModelPlan plan = plan_of(config);
  CHECK(plan.parameters.size() == specs.size());
  const AddressSpace space = address_space(config, plan);
  std::vector<int> unit_of(specs.size(), space.units() - 1);
  for (const Piece& piece : space.pieces())
    unit_of[static_cast<std::size_t>(piece.parameter)] = piece.unit;
  std::vector<std::vector<ArenaRange>> own(static_cast<std::size_t>(space.units()));
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::int64_t end = i + 1 < specs.size() ? specs[i + 1].offset : arena_elements(specs);
    own[static_cast<std::size_t>(unit_of[i])].push_back({specs[i].offset, end});
  }
  std::vector<ArenaUnit> units;
  for (std::vector<ArenaRange>& ranges : own) {
    const RangeSet set(std::move(ranges));
    units.push_back({"layer " + std::to_string(std::ssize(units) - 1), set, set});
  }
  units.front().name = "the embeddings";
  units.back().name = "the output layer";
  if (plan.lm_head && plan.lm_head.weight == plan.embedding) {
    const ParameterSpec& tied = specs[static_cast<std::size_t>(plan.embedding)];
    units.back().read =
        units.back().own.united({ArenaRange{tied.offset, tied.offset + tied.count}});
  }
  return units;
}

}  // namespace rl
