#include "rl/optim/matrix_exchange.h"

#include <cstddef>
#include <utility>

namespace rl {

using runtime::Status;

namespace {

std::vector<RangeSet> sets_of(std::span<const PackedRanges> homes) {
  std::vector<RangeSet> sets;
  for (const PackedRanges& home : homes) sets.push_back(home.set());
  return sets;
}

}  // namespace

MatrixExchange::MatrixExchange(Communicator& communicator, std::int64_t elements,
                               std::vector<ArenaMatrix> matrices,
                               std::span<const PackedRanges> homes)
    : communicator_(communicator),
      matrices_(std::move(matrices)),
      homes_(homes.begin(), homes.end()),
      deal_(matrices_, sets_of(homes), communicator.size()) {
  if (homes_.empty()) homes_.emplace_back(RangeSet{{0, elements}});
}

const PackedRanges& MatrixExchange::home() const {
  return homes_[has_all() ? 0 : static_cast<std::size_t>(communicator_.rank())];
}

const ArenaMatrix* MatrixExchange::mine(int turn) const {
  const MatrixTurn& now = deal_.turns()[static_cast<std::size_t>(turn)];
  const int index = now.of_rank[static_cast<std::size_t>(communicator_.rank())];
  return index == MatrixTurn::kNone ? nullptr : &matrices_[static_cast<std::size_t>(index)];
}

std::vector<ArenaRange> MatrixExchange::matrices_at_home() const {
  std::vector<ArenaRange> ranges;
  for (const ArenaMatrix& matrix : matrices_) ranges.push_back(matrix.range());
  return home().packed_parts(ranges);
}

// Those that this rank owns or keeps; both sides of a pair have them in the same order.
std::vector<MatrixExchange::Part> MatrixExchange::parts_of(int turn, int piece) const {
  const MatrixTurn& now = deal_.turns()[static_cast<std::size_t>(turn)];
  const int rank = communicator_.rank();
  std::vector<Part> parts;
  for (int owner = 0; owner < communicator_.size(); ++owner) {
    const int index = now.of_rank[static_cast<std::size_t>(owner)];
    if (index == MatrixTurn::kNone) continue;
    const ArenaMatrix& matrix = matrices_[static_cast<std::size_t>(index)];
    const RangeSet wanted{now.piece(matrix, piece)};
    for (int keeper = 0; keeper < communicator_.size(); ++keeper) {
      if (owner != rank && keeper != rank) continue;
      const PackedRanges& kept = homes_[has_all() ? 0 : static_cast<std::size_t>(keeper)];
      const RangeSet both = kept.set().intersected(wanted);
      for (const ArenaRange& range : both.ranges())
        parts.push_back({owner, keeper, &matrix, range});
    }
  }
  return parts;
}

// By part: where it is while it comes or goes; empty for those of this rank's own matrix.
std::vector<std::span<float>> MatrixExchange::make_room(std::span<const Part> parts) {
  std::int64_t elements = 0;
  for (const Part& part : parts)
    if (part.owner != communicator_.rank()) elements += part.range.size();
  room_.resize(static_cast<std::size_t>(elements));
  std::vector<std::span<float>> places;
  std::int64_t next = 0;
  for (const Part& part : parts) {
    const bool moves = part.owner != communicator_.rank();
    const std::int64_t size = moves ? part.range.size() : 0;
    places.push_back(part_of(std::span(room_), {next, next + size}));
    next += size;
  }
  return places;
}

Status MatrixExchange::move(std::span<const Outgoing> sent, std::span<const Incoming> received,
                            const char* what) {
  if (communicator_.size() == 1) return {};
  return communicator_.all_to_all(sent, received, what);
}

// Where ranks have all of the arena each writes all, since its state is of all; nothing is sent.
Status MatrixExchange::collect(int turn, const Write& write, std::span<float> whole) {
  const int rank = communicator_.rank();
  const int pieces = deal_.turns()[static_cast<std::size_t>(turn)].pieces;
  for (int piece = 0; piece < pieces; ++piece) {
    const std::vector<Part> parts = parts_of(turn, piece);
    const std::vector<std::span<float>> places = make_room(parts);
    std::vector<Outgoing> sent;
    std::vector<Incoming> received;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      const bool is_mine = part.owner == rank;
      const std::span<float> place = is_mine ? part_of(whole, part.in_matrix()) : places[i];
      if (part.keeper == rank) write(*part.matrix, home().packed(part.range), place);
      if (has_all() || part.owner == part.keeper) continue;
      if (is_mine)
        received.push_back({part.keeper, std::as_writable_bytes(place)});
      else
        sent.push_back({part.owner, std::as_bytes(place)});
    }
    if (has_all()) continue;
    const Status moved = move(sent, received, "parts of matrices");
    if (!moved.ok()) return moved;
  }
  return {};
}

Status MatrixExchange::distribute(int turn, std::span<const float> whole, const Read& read) {
  const int rank = communicator_.rank();
  const int pieces = deal_.turns()[static_cast<std::size_t>(turn)].pieces;
  for (int piece = 0; piece < pieces; ++piece) {
    const std::vector<Part> parts = parts_of(turn, piece);
    const std::vector<std::span<float>> places = make_room(parts);
    std::vector<Outgoing> sent;
    std::vector<Incoming> received;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      if (part.owner != rank)
        received.push_back({part.owner, std::as_writable_bytes(places[i])});
      else if (part.keeper != rank)
        sent.push_back({part.keeper, std::as_bytes(part_of(whole, part.in_matrix()))});
    }
    const Status moved = move(sent, received, "orthogonal matrices");
    if (!moved.ok()) return moved;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      if (part.keeper != rank) continue;
      const std::span<const float> values =
          part.owner == rank ? part_of(whole, part.in_matrix()) : places[i];
      read(*part.matrix, home().packed(part.range), values);
    }
  }
  return {};
}

}  // namespace rl
