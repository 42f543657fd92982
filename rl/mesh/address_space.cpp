#include "rl/mesh/address_space.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "runtime/core/check.h"

namespace rl {

AddressSpace::AddressSpace(std::vector<Piece> pieces, int units, int blocks)
    : pieces_(std::move(pieces)), units_(static_cast<std::size_t>(units)), blocks_(blocks) {
  CHECK(blocks > 0);
  for (const Piece& piece : pieces_) {
    CHECK(piece.unit >= 0);
    CHECK(piece.unit < units);
    CHECK(piece.block < blocks);
    CHECK(piece.block == kUncut || piece.expert == kUncut);
    Unit& unit = units_[static_cast<std::size_t>(piece.unit)];
    unit.experts = std::max(unit.experts, piece.expert + 1);
  }
  // Uncut pieces first: both are kUncut there.
  std::ranges::stable_sort(pieces_, {}, [](const Piece& piece) {
    return std::tuple(piece.unit, piece.expert, piece.block);
  });
  auto next = pieces_.begin();
  for (int unit = 0; unit < units; ++unit) {
    Unit& places = units_[static_cast<std::size_t>(unit)];
    const auto lay = [&](int block, int expert) {
      places.begins.push_back(elements_);
      for (; next != pieces_.end() && next->unit == unit && next->block == block &&
             next->expert == expert;
           ++next) {
        next->at = {elements_, elements_ + next->part.elements()};
        elements_ = rounded_up(next->at.end);
      }
      elements_ = rounded_up(elements_, kPageElements);
    };
    lay(kUncut, kUncut);
    for (int block = 0; block < blocks_; ++block) lay(block, kUncut);
    for (int expert = 0; expert < places.experts; ++expert) lay(kUncut, expert);
    places.begins.push_back(elements_);
  }
  CHECK(next == pieces_.end());
}

ArenaRange AddressSpace::group(int unit, std::size_t index) const {
  const std::vector<std::int64_t>& begins = units_[static_cast<std::size_t>(unit)].begins;
  CHECK(index + 1 < begins.size());
  return {begins[index], begins[index + 1]};
}

ArenaRange AddressSpace::unit(int unit) const {
  const std::vector<std::int64_t>& begins = units_[static_cast<std::size_t>(unit)].begins;
  return {begins.front(), begins.back()};
}

ArenaRange AddressSpace::uncut(int unit) const { return group(unit, 0); }

ArenaRange AddressSpace::block(int unit, int block) const {
  CHECK(block < blocks_);
  return group(unit, 1 + static_cast<std::size_t>(block));
}

ArenaRange AddressSpace::expert(int unit, int expert) const {
  CHECK(expert < experts(unit));
  return group(unit, 1 + static_cast<std::size_t>(blocks_) + static_cast<std::size_t>(expert));
}

}  // namespace rl
