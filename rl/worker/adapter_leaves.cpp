#include "rl/worker/adapter_leaves.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include "rl/model/guarded.h"
#include "rl/model/pass_parts.h"
#include "rl/model/stage_cuts.h"
#include "rl/model/tensor_span.h"
#include "runtime/core/check.h"

namespace rl {

using runtime::Status;

namespace {

bool deals_experts(const PassSharing& sharing) {
  return sharing.ranks > 1 && sharing.cut == PassCut::kRowsAndExperts;
}

ArenaRange range_of(const Parameters& parameters, const std::string& name) {
  const ParameterSpec* spec = parameters.find(name);
  CHECK(spec != nullptr);
  return {spec->offset, spec->offset + spec->count};
}

}  // namespace

bool adds_to_adapter(const PassTeam& team, int turn) {
  const PassSharing sharing = team.sharing();
  if (deals_experts(sharing)) return true;
  return team.rank() % sharing.ranks == turn % sharing.ranks;
}

AdapterLeaves::AdapterLeaves(Transformer& model) : model_(model) {
  const LoraAdapter* adapter = model.adapter(model.used_adapter());
  if (adapter == nullptr || model.team() == nullptr) return;
  const PassSharing sharing = model.team()->sharing();
  if (!sharing.deals_weights()) return;
  stage_ranks_ = static_cast<int>(sharing.ranks);
  const std::span<const ParameterSpec> specs = model.parameters().specs();
  const StageCuts layers(model.config(), specs, static_cast<int>(sharing.stages),
                         static_cast<int>(sharing.chunks));
  const PassParts parts = pass_parts(model.config(), specs, sharing);
  for (const LoraModule& lora : adapter->modules()) {
    const ArenaRange weight = range_of(model.parameters(), lora.weight);
    Module module{.a = range_of(adapter->parameters(), lora.a),
                  .b = range_of(adapter->parameters(), lora.b)};
    while (!layers.differentiated(module.stage).contains(weight)) ++module.stage;
    for (int place = 0; deals_experts(sharing) && place < stage_ranks_; ++place) {
      const auto position = static_cast<std::size_t>(module.stage * stage_ranks_ + place);
      if (parts.differentiated[position].contains(weight)) module.place = place;
    }
    modules_.push_back(module);
  }
}

// What the rank at that position has computed of the leaf, and no other sends.
RangeSet AdapterLeaves::added(int position, int turn) const {
  std::vector<ArenaRange> ranges;
  for (const Module& module : modules_) {
    const int place = module.place == kAny ? turn % stage_ranks_ : module.place;
    if (position != module.stage * stage_ranks_ + place) continue;
    ranges.push_back(module.a);
    ranges.push_back(module.b);
  }
  return RangeSet(std::move(ranges));
}

Status AdapterLeaves::end_turn(int turn) {
  if (modules_.empty()) return {};
  return guarded<void>("an adapter's gradients of a leaf", [&] { collect(turn); });
}

void AdapterLeaves::collect(int turn) {
  const PassTeam& team = *model_.team();
  const std::span<float> gradients = elements_of(model_.gradients().arena());
  std::vector<Outgoing> sent;
  std::vector<Incoming> received;
  for (int position = 0; position < team.size(); ++position) {
    if (position == turn || (team.rank() != turn && team.rank() != position)) continue;
    const RangeSet ranges = added(position, turn);
    for (const ArenaRange& range : ranges.ranges()) {
      const auto part = gradients.subspan(static_cast<std::size_t>(range.begin),
                                          static_cast<std::size_t>(range.end - range.begin));
      if (team.rank() == turn)
        received.push_back({position, std::as_writable_bytes(part)});
      else
        sent.push_back({turn, std::as_bytes(part)});
    }
  }
  throw_unless_ok(
      team.communicator().all_to_all(sent, received, "an adapter's gradients of a leaf"));
  if (team.rank() == turn) {
    leaf_.assign(gradients.begin(), gradients.end());
    model_.gradient_arena().overwritten();  // by the others' parts
  }
  model_.zero_gradients();
  if (turn + 1 < team.size()) return;
  std::ranges::copy(leaf_, gradients.begin());
  model_.gradient_arena().overwritten();
}

}  // namespace rl
