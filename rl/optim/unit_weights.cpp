#include "rl/optim/unit_weights.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "rl/mesh/unit_homes.h"
#include "rl/model/family.h"
#include "rl/model/guarded.h"
#include "rl/optim/home_exchange.h"
#include "rl/profile/recorder.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

using runtime::Status;

RangeSet all_of(std::span<const float> arena) { return {{0, std::ssize(arena)}}; }

}  // namespace

UnitWeights::UnitWeights(Communicator& communicator, Transformer& model,
                         std::span<const ArenaUnit> units, std::span<const RangeSet> homes,
                         const UnitWeightsOptions& options)
    : communicator_(communicator),
      model_(model),
      units_(units.begin(), units.end()),
      options_(options),
      group_(options.shard_ranks > 0 ? static_cast<int>(options.shard_ranks) : communicator.size()),
      homes_(homes.begin(), homes.end()),
      copies_(group_homes(homes_, group_)),
      packed_(copies_[static_cast<std::size_t>(communicator.rank())]),
      memory_(make_memory()),
      arena_(memory_->host()),
      there_(units_.size(), 0),
      projects_embeddings_(static_cast<bool>(plan_of(model.config()).project_in)) {
  CHECK(communicator.size() % group_ == 0);
  CHECK(!options_.stays || (!has_copies() && !options_.begins_scattered));
  if (!keeps_all()) {
    memory_->bring_down(packed_.set());
    if (options_.begins_scattered)
      move_out();
    else
      keep_from(arena_);
    memory_->close_host(packed_.set());
  }
  if (options_.stays && !keeps_all()) memory_->take(used_by(communicator.rank()));
  model_.tell(*this);
}

std::unique_ptr<PassMemory> UnitWeights::make_memory() const {
  const Parameters& parameters = model_.parameters();
  if (options_.host_copy.defined()) return copied_memory(parameters, options_.host_copy);
  const auto size = [this](const ArenaUnit& unit) {
    return read_in_pass(communicator_.rank(), unit).elements();
  };
  return pass_memory_of(parameters, largest_layer(units_, size));
}

RangeSet UnitWeights::used_by(int rank) const {
  return options_.used.empty() ? all_of(arena_) : options_.used[static_cast<std::size_t>(rank)];
}

// In passes the unit's part; where all weights were asked for, all.
RangeSet UnitWeights::read_by(int rank, int unit) const {
  const ArenaUnit& place = units_[static_cast<std::size_t>(unit)];
  return whole_ > 0 ? place.own : read_in_pass(rank, place);
}

RangeSet UnitWeights::read_in_pass(int rank, const ArenaUnit& unit) const {
  return options_.used.empty() ? unit.read : unit.read.intersected(used_by(rank));
}

UnitWeights::~UnitWeights() { model_.stop_telling(*this); }

void UnitWeights::open() {
  if (whole_++ == 0) memory_->take(all_of(arena_));
}

std::span<float> UnitWeights::home() {
  if (kept_.empty()) keep_from(arena_);
  if (!has_copies()) return kept_;
  const RangeSet& home = homes_[static_cast<std::size_t>(communicator_.rank())];
  steps_ = true;
  step_.clear();
  step_.reserve(static_cast<std::size_t>(home.elements()));
  for (const ArenaRange& range : home.ranges()) {
    const std::span<const float> mine = part_of(std::span(kept_), packed_.packed(range));
    step_.insert(step_.end(), mine.begin(), mine.end());
  }
  return step_;
}

void UnitWeights::keep_from(std::span<const float> arena) {
  kept_.resize(static_cast<std::size_t>(packed_.elements()));
  for (const ArenaRange& range : packed_.set().ranges())
    std::ranges::copy(part_of(arena, range),
                      part_of(std::span(kept_), packed_.packed(range)).begin());
  if (arena.data() == arena_.data() || !options_.stays) return;
  const RangeSet used = used_by(communicator_.rank());
  for (const ArenaRange& range : used.ranges())
    std::ranges::copy(part_of(arena, range), part_of(arena_, range).begin());
}

void UnitWeights::move_out() {
  kept_.reserve(static_cast<std::size_t>(packed_.elements()));
  for (const ArenaRange& range : packed_.set().ranges()) {
    const std::span<const float> part = part_of(std::span<const float>(arena_), range);
    kept_.insert(kept_.end(), part.begin(), part.end());
    memory_->forget(range);
  }
  scatter();
}

RangeSet UnitWeights::needed() const {
  const RangeSet& kept = packed_.set();
  return options_.stays ? kept.united(used_by(communicator_.rank())) : kept;
}

Status UnitWeights::gather() {
  open();
  return whole_ == 1 && !keeps_all() ? spread() : Status();
}

// Unit by unit, each of which is a sign of progress.
Status UnitWeights::spread() {
  if (std::exchange(steps_, false)) {
    if (const Status copied = copy_step(); !copied.ok()) return copied;
  }
  if (is_scattered()) {
    // Passes that were broken off may have left the old ones.
    if (coming_ == kNone) let_go_of_all_but(kNone, kNone);
    return {};
  }
  for (int unit = 0; unit < std::ssize(units_); ++unit) {
    const RangeSet arriving = read_by(communicator_.rank(), unit);
    memory_->open_host(arriving);
    begin(unit);
    if (const Status there = communicator_.finish(transfer_); !there.ok()) return there;
    memory_->send_up(arriving);
  }
  if (keeps_all()) std::vector<float>().swap(kept_);
  return {};
}

// Each rank's home, to those that have its place in other groups.
Status UnitWeights::copy_step() {
  const int rank = communicator_.rank();
  const PackedRanges home(homes_[static_cast<std::size_t>(rank)]);
  for (const ArenaUnit& unit : units_) {
    const RangeSet own = home.set().intersected(unit.own);
    std::vector<Outgoing> sent;
    std::vector<Incoming> received;
    for (int keeper = rank % group_; keeper < communicator_.size(); keeper += group_) {
      const RangeSet of_keeper = homes_[static_cast<std::size_t>(keeper)].intersected(unit.own);
      for (const ArenaRange& range : of_keeper.ranges()) {
        const std::span<float> copy = part_of(std::span(kept_), packed_.packed(range));
        if (keeper == rank)
          std::ranges::copy(part_of(std::span(step_), home.packed(range)), copy.begin());
        else
          received.push_back({keeper, std::as_writable_bytes(copy)});
      }
      if (keeper == rank) continue;
      for (const ArenaRange& range : own.ranges())
        sent.push_back({keeper, std::as_bytes(part_of(std::span(step_), home.packed(range)))});
    }
    const Status copied = communicator_.all_to_all(sent, received, "new weights of " + unit.name);
    if (!copied.ok()) return copied;
  }
  std::vector<float>().swap(step_);
  return {};
}

// The first group has all of them.
Status UnitWeights::collect(std::span<float> whole) {
  std::vector<PackedRanges> parts;
  for (std::size_t rank = 0; rank < copies_.size(); ++rank)
    parts.emplace_back(static_cast<int>(rank) < group_ ? copies_[rank] : RangeSet());
  return collect_homes(communicator_, parts, kept_, whole);
}

void UnitWeights::scatter() {
  CHECK(whole_ > 0);
  if (--whole_ > 0) return;
  memory_->give_back(all_of(arena_));
  memory_->release();
  memory_->reset_most();
}

std::int64_t UnitWeights::most_there() {
  const std::int64_t most = memory_->most();
  memory_->reset_most();
  return most;
}

void UnitWeights::before_forward(std::int64_t layer) {
  if (!is_scattered()) return;
  const int unit = static_cast<int>(layer) + 1;
  bring(unit);
  // The last layer's weights are the first that the backward pass asks for.
  if (unit + 1 == std::ssize(units_) && c10::GradMode::is_enabled()) return;
  // The next one is there already where it stayed since the pass before.
  if (options_.reshard_after_forward || !c10::GradMode::is_enabled())
    let_go_of_all_but(unit, unit + 1);
  if (unit + 1 < std::ssize(units_))
    fetch(unit + 1);
  else if (another_follows_)
    fetch_for_next_pass();
}

// While the last unit computes: never more than two units. Tied embeddings are in the last one, and
// may be all that the first one has.
void UnitWeights::fetch_for_next_pass() {
  const bool has_first =
      options_.used.empty() && units_.front().read.without(units_.back().read).empty();
  if (has_first && there_[0] == 0) {
    memory_->take(read_by(communicator_.rank(), 0));
    there_[0] = 1;
  }
  fetch(1);
}

void UnitWeights::before_backward(std::int64_t layer) {
  if (!is_scattered()) return;
  const int unit = static_cast<int>(layer) + 1;
  bring(unit);
  let_go_of_what_follows(unit);
  if (unit > 1)
    fetch(unit - 1);
  else if (projects_embeddings_)
    bring(0);  // what widens the embeddings goes back through its weight
  else if (another_follows_)
    fetch(0);
}

void UnitWeights::after_pass() {
  if (!is_scattered()) return;
  if (another_follows_) return let_go_of_all_but(0, 1);
  let_go_of_all_but(kNone, kNone);
  memory_->release();
}

// What the unit's passes read is in transit, or there.
void UnitWeights::fetch(int unit) {
  if (coming_ == unit || there_[static_cast<std::size_t>(unit)] != 0) return;
  if (coming_ != kNone) bring(coming_);  // another pass has begun than this one
  const RangeSet arriving = read_by(communicator_.rank(), unit);
  memory_->take(arriving);
  memory_->open_host(arriving);
  there_[static_cast<std::size_t>(unit)] = 1;
  coming_ = unit;
  begin(unit);
}

void UnitWeights::bring(int unit) {
  fetch(unit);
  if (coming_ != unit) return;
  coming_ = kNone;
  throw_unless_ok(communicator_.finish(transfer_));
  memory_->send_up(read_by(communicator_.rank(), unit));
}

void UnitWeights::let_go_of_all_but(int first, int last) {
  const auto stays = [&](int unit) { return first <= unit && unit <= last; };
  if (coming_ != kNone && !stays(coming_)) bring(coming_);
  for (int unit = 0; unit < std::ssize(units_); ++unit)
    if (!stays(unit)) drop(unit);
}

void UnitWeights::let_go_of_what_follows(int unit) {
  for (int other = unit + 1; other < std::ssize(units_); ++other) drop(other);
}

void UnitWeights::drop(int unit) {
  if (there_[static_cast<std::size_t>(unit)] == 0) return;
  memory_->give_back(read_by(communicator_.rank(), unit));
  there_[static_cast<std::size_t>(unit)] = 0;
}

void UnitWeights::begin(int unit) {
  std::vector<Outgoing> sent;
  std::vector<Incoming> received;
  const int rank = communicator_.rank();
  const int first = rank / group_ * group_;  // of the rank's group, which has all weights
  for (int reader = first; reader < first + group_; ++reader) {
    const RangeSet wanted = read_by(reader, unit);
    for (int keeper = first; keeper < first + group_; ++keeper) {
      if (reader != rank && keeper != rank) continue;
      const RangeSet part = copies_[static_cast<std::size_t>(keeper)].intersected(wanted);
      for (const ArenaRange& range : part.ranges()) {
        if (keeper != rank) {
          received.push_back({keeper, std::as_writable_bytes(part_of(arena_, range))});
          continue;
        }
        const std::span<const float> mine =
            part_of(std::span<const float>(kept_), packed_.packed(range));
        if (reader == rank)
          std::ranges::copy(mine, part_of(arena_, range).begin());
        else
          sent.push_back({reader, std::as_bytes(mine)});
      }
    }
  }
  transfer_ = communicator_.begin_exchange(
      sent, received, "weights of " + units_[static_cast<std::size_t>(unit)].name);
}

}  // namespace rl
