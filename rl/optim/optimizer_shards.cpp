#include "rl/optim/optimizer_shards.h"

#include <algorithm>
#include <cstddef>

#include "rl/mesh/deal.h"
#include "rl/optim/optimizer.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// Of the state that is collected at a time: 8 MiB.
constexpr std::int64_t kPieceElements = std::int64_t{1} << 21;

template <class T>
std::span<T> in(std::span<T> arena, const ArenaRange& range) {
  return arena.subspan(static_cast<std::size_t>(range.begin),
                       static_cast<std::size_t>(range.size()));
}

std::size_t chunks_of(const ArenaRange& home) {
  return static_cast<std::size_t>((home.size() + kNormChunk - 1) / kNormChunk);
}

}  // namespace

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

OptimizerShards::OptimizerShards(Communicator& communicator, std::int64_t elements, ZeroLevel level)
    : communicator_(communicator), home_{0, elements} {
  if (level == ZeroLevel::kNone || communicator.size() == 1) return;
  homes_ = moment_homes(elements, communicator.size());
  home_ = homes_[static_cast<std::size_t>(communicator.rank())];
}

Status OptimizerShards::add_round(std::span<float> gradients, std::span<const std::uint8_t> adds,
                                  bool last) {
  const Status added =
      communicator_.reduce_round(gradients, rounds_, adds, last, homes_, "gradients");
  is_summed_ = last && added.ok();
  return added;
}

Status OptimizerShards::sum(std::span<float> gradients) {
  if (!is_sharded()) return communicator_.all_reduce_sum(gradients, "gradients");
  const std::vector<std::uint8_t> all(homes_.size(), 1);
  return communicator_.reduce_round(gradients, rounds_, all, /*last=*/true, homes_, "gradients");
}

Result<double> OptimizerShards::norm(kernel::ThreadPool& pool, std::span<const float> gradients) {
  const std::vector<double> mine = square_sums(pool, in(gradients, home_));
  if (!is_sharded()) return norm_of(mine);
  std::size_t chunks = 0;
  for (const ArenaRange& home : homes_) chunks += chunks_of(home);
  std::vector<double> all(chunks);
  std::vector<std::span<std::byte>> others;
  std::size_t begin = 0;
  for (const ArenaRange& home : homes_) {
    const std::span<double> of_rank = std::span(all).subspan(begin, chunks_of(home));
    if (&home - homes_.data() == communicator_.rank()) std::ranges::copy(mine, of_rank.begin());
    others.push_back(std::as_writable_bytes(of_rank));
    begin += of_rank.size();
  }
  const Status gathered =
      communicator_.all_gather(std::as_bytes(std::span(mine)), others, "squares of the gradient");
  if (!gathered.ok()) return gathered;
  return norm_of(all);
}

Status OptimizerShards::share(std::span<float> weights) {
  if (!is_sharded()) return {};
  return communicator_.gather_homes(weights, homes_, "weights");
}

// In pieces, each of which is a sign of progress.
Status OptimizerShards::collect(std::span<const float> of_home, std::span<float> whole) {
  const bool receives = communicator_.rank() == 0;
  if (receives) std::ranges::copy(of_home, whole.begin() + home_.begin);
  std::int64_t largest = 0;
  for (const ArenaRange& home : homes_) largest = std::max(largest, home.size());
  for (std::int64_t first = 0; first < largest; first += kPieceElements) {
    std::vector<Outgoing> sent;
    std::vector<Incoming> received;
    for (int rank = 1; rank < communicator_.size(); ++rank) {
      const ArenaRange& home = homes_[static_cast<std::size_t>(rank)];
      const ArenaRange piece{std::min(home.begin + first, home.end),
                             std::min(home.begin + first + kPieceElements, home.end)};
      if (receives)
        received.push_back({rank, std::as_writable_bytes(in(whole, piece))});
      else if (rank == communicator_.rank())
        sent.push_back(
            {0, std::as_bytes(in(of_home, {piece.begin - home.begin, piece.end - home.begin}))});
    }
    const Status moved = communicator_.all_to_all(sent, received, "the optimizer's state");
    if (!moved.ok()) return moved;
  }
  return {};
}

}  // namespace rl
