#include "rl/optim/unit_sums.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "rl/model/guarded.h"
#include "rl/model/tensor_span.h"
#include "runtime/core/check.h"

namespace rl {

UnitSums::UnitSums(Communicator& communicator, Transformer& model, std::span<const ArenaUnit> units,
                   std::span<const RangeSet> homes, const TeamParts& teams)
    : communicator_(communicator),
      model_(model),
      teams_(teams),
      packed_(homes[static_cast<std::size_t>(communicator.rank())]),
      memory_(pass_memory_of(
          model.gradient_arena().memory(),
          largest_layer(units, [](const ArenaUnit& unit) { return unit.own.elements(); }))),
      arena_(memory_->host()),
      sum_(static_cast<std::size_t>(packed_.elements())),
      coming_(communicator) {
  for (const ArenaUnit& place : units) {
    Unit& unit = units_.emplace_back(Unit{place, {}, false});
    RangeSet left = place.own;  // with the gaps, which are the first ranks'
    for (int position = 1; position < teams_.positions(); ++position) {
      const RangeSet part =
          place.own.intersected(teams_.differentiated[static_cast<std::size_t>(position)]);
      left = left.without(part);
      for (const ArenaRange& range : part.ranges()) add_part(unit, range, position, homes);
    }
    for (const ArenaRange& range : left.ranges()) add_part(unit, range, 0, homes);
  }
  model_.gradient_arena().drop();
  memory_->give_back({{0, std::ssize(arena_)}});
  model_.tell(*this);
}

void UnitSums::add_part(Unit& unit, const ArenaRange& range, int position,
                        std::span<const RangeSet> homes) {
  const auto rank = static_cast<std::size_t>(communicator_.rank());
  for (HomeSlices& slices : slices_of(range, homes)) {
    const std::span<float> mine = part_of(std::span(sum_), packed_.packed(slices[rank]));
    Part& part = unit.parts.emplace_back(Part{std::move(slices), {}, position});
    part.rounds.kept = true;
    part.rounds.place = mine;
  }
}

// Of each team whose leaf is added, the rank that has these elements' gradient.
std::vector<std::uint8_t> UnitSums::adds_of(int position) const {
  if (teams_.positions() == 1) return adds_;
  const std::size_t teams = adds_.size() / static_cast<std::size_t>(teams_.positions());
  std::vector<std::uint8_t> adds(adds_.size(), 0);
  for (std::size_t rank = 0; rank < adds_.size(); ++rank) {
    if (adds_[rank] == 0) continue;
    std::uint8_t& one = adds[static_cast<std::size_t>(position) * teams + rank % teams];
    CHECK(one == 0);
    one = 1;
  }
  return adds;
}

UnitSums::~UnitSums() { model_.stop_telling(*this); }

void UnitSums::expect_last_pass(std::span<const std::uint8_t> adds, bool last_round,
                                std::size_t passes_before) {
  CHECK(adds.size() == static_cast<std::size_t>(communicator_.size()));
  CHECK(!complete_);
  adds_.assign(adds.begin(), adds.end());
  last_round_ = last_round;
  passes_before_ = passes_before;
  next_ = static_cast<int>(units_.size());
}

void UnitSums::end_step() { complete_ = false; }

// Going back begins with the output layer; of a tied one the embeddings get gradients there, too.
void UnitSums::before_forward(std::int64_t layer) {
  if (layer + 2 != std::ssize(units_) || !c10::GradMode::is_enabled()) return;
  open(units_.back());
  if (!units_.back().place.borrowed().empty()) open(units_.front());
}

// All behind the unit have their gradients.
void UnitSums::before_backward(std::int64_t layer) {
  const int unit = static_cast<int>(layer) + 1;
  sum_down_to(unit + 1);
  open(units_[static_cast<std::size_t>(unit)]);
  if (unit == 1) open(units_.front());
}

void UnitSums::after_pass() {
  if (!is_adding()) {
    if (passes_before_ > 0) --passes_before_;
    return;
  }
  sum_down_to(0);
  finish_sum();
  coming_.release();
  memory_->release();
  adds_.clear();
  complete_ = last_round_;
}

void UnitSums::sum_down_to(int unit) {
  if (!is_adding()) return;
  while (next_ > unit) sum(units_[static_cast<std::size_t>(--next_)]);
}

void UnitSums::open(Unit& unit) {
  if (unit.there) return;
  memory_->take_zeros(unit.place.own);
  unit.there = true;
}

// All parts of a unit go in one exchange, so that ranks wait for each other once. A unit of more
// than the buckets of a sum take goes through these instead.
void UnitSums::sum(Unit& unit) {
  finish_sum();
  GradientArena& gradients = model_.gradient_arena();
  open(unit);
  for (const ArenaRange& range : unit.place.own.ranges()) gradients.settle(range);
  memory_->bring_down(unit.place.own);
  const std::string what = "gradients of " + unit.place.name;
  if (unit.place.own.elements() <= kInOneExchange) {
    std::vector<SliceSums::Part> parts;
    for (Part& part : unit.parts)
      parts.push_back({part.slices, adds_of(part.position), &part.rounds});
    coming_.begin(arena_, std::move(parts), what);
    coming_unit_ = &unit;
    return;
  }
  for (Part& part : unit.parts) {
    throw_unless_ok(communicator_.reduce_round(arena_, part.rounds, adds_of(part.position),
                                               last_round_, part.slices, what));
  }
  drop(unit);
}

void UnitSums::finish_sum() {
  if (coming_unit_ == nullptr) return;
  Unit& unit = *std::exchange(coming_unit_, nullptr);
  throw_unless_ok(coming_.finish(last_round_));
  drop(unit);
}

void UnitSums::drop(Unit& unit) {
  for (const ArenaRange& range : unit.place.own.ranges()) model_.gradient_arena().drop(range);
  memory_->close_host(unit.place.own);
  memory_->give_back(unit.place.own);
  unit.there = false;
}

}  // namespace rl
