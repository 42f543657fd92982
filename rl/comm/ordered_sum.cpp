#include "rl/comm/ordered_sum.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "runtime/core/check.h"

namespace rl {

using runtime::Status;

namespace {

// The exchanges of an operation have their own numbers, so that a rank that makes another call,
// or as many with other sizes, is noticed.
std::uint64_t exchange_number(std::uint64_t operation, std::size_t bucket, bool back) {
  return operation << 24 | static_cast<std::uint64_t>(bucket) << 1 | (back ? 1 : 0);
}

// Buckets that are sent to be added up before the first is waited for. As many come back.
constexpr std::size_t kAhead = kSumWindow / 2;

constexpr std::size_t kChunk = 2048;

// The size is a constant, so that the compiler uses vectors.
template <class T>
void add_chunk(T* __restrict total, const T* __restrict term) {
  for (std::size_t i = 0; i < kChunk; ++i) total[i] += term[i];
}

}  // namespace

// By chunks that stay in the cache, so that each term is read once. `into` may be one of the terms.
template <class T>
void add_terms(std::span<T> into, bool begun, std::span<const std::span<const T>> terms) {
  std::array<T, kChunk> total;
  for (std::size_t begin = 0; begin < into.size(); begin += kChunk) {
    const std::size_t count = std::min(kChunk, into.size() - begin);
    bool has_any = begun;
    if (begun) std::copy_n(into.data() + begin, count, total.data());
    for (const std::span<const T> of_rank : terms) {
      const T* term = of_rank.data() + begin;
      if (!has_any)
        std::copy_n(term, count, total.data());
      else if (count == kChunk)
        add_chunk(total.data(), term);
      else
        for (std::size_t i = 0; i < count; ++i) total[i] += term[i];
      has_any = true;
    }
    if (!has_any) total.fill(T{0});
    std::copy_n(total.data(), count, into.data() + begin);
  }
}

template <class T>
Status OrderedSum<T>::all_reduce(std::span<T> values) {
  return run(values);
}

template <class T>
Status OrderedSum<T>::all_gather(std::span<T> values) {
  sums_ = false;
  return run(values);
}

template <class T>
Status OrderedSum<T>::add_round(std::span<T> values, SumRounds<T>& rounds,
                                std::span<const std::uint8_t> adds, bool last, bool gathers) {
  CHECK(adds.size() == static_cast<std::size_t>(links_.size()));
  // A sum of one round carries nothing.
  if (!rounds.kept && rounds.carry.empty() && !last)
    rounds.carry.resize(plan_.elements_of(links_.rank()));
  CHECK(!rounds.kept || rounds.place.size() == plan_.elements_of(links_.rank()));
  CHECK(!rounds.kept || !gathers);
  adds_ = adds;
  carry_ = rounds.kept ? rounds.place : std::span<T>(rounds.carry);
  kept_ = rounds.kept;
  begun_ = rounds.begun;
  last_ = last;
  gathers_ = last && gathers;
  const Status added = run(values);
  rounds.begun = !last && (rounds.begun || std::ranges::any_of(adds, std::identity()));
  if (last) rounds.carry = {};
  return added;
}

template <class T>
Status OrderedSum<T>::run(std::span<T> values) {
  values_ = values;
  std::size_t carried = 0;
  const std::size_t count = plan_.buckets();
  std::array<Bucket, kSumWindow> window;
  for (std::size_t index = 0; index < count + kAhead; ++index) {
    if (index < count) {
      Bucket& next = window[index % kSumWindow];
      if (next.gathered) {
        if (const Status done = next.gathered->wait(); !done.ok()) return done;
        next.gathered.reset();
      }
      next.index = index;
      const std::size_t mine = slice_of(next, links_.rank()).size();
      if (!carry_.empty()) next.carry = carry_.subspan(carried, mine);
      carried += mine;
      if (sums_) scatter(next);
    }
    if (index < kAhead) continue;
    Bucket& current = window[(index - kAhead) % kSumWindow];
    if (current.scattered) {
      if (const Status done = current.scattered->wait(); !done.ok()) return done;
      current.scattered.reset();
    }
    if (sums_) add(current);
    if (gathers_) gather(current);
    on_progress_();
  }
  for (Bucket& bucket : window) {
    if (!bucket.gathered) continue;
    if (const Status done = bucket.gathered->wait(); !done.ok()) return done;
  }
  return {};
}

template <class T>
std::span<T> OrderedSum<T>::slice_of(const Bucket& bucket, int rank) const {
  const SumPlan::Slice slice = plan_.slice(bucket.index, rank);
  return values_.subspan(slice.begin, slice.size());
}

template <class T>
std::span<T> OrderedSum<T>::addend(Bucket& bucket, int rank) const {
  const std::size_t size = slice_of(bucket, links_.rank()).size();
  return std::span<T>(bucket.addends).subspan(size * static_cast<std::size_t>(rank), size);
}

template <class T>
void OrderedSum<T>::scatter(Bucket& bucket) const {
  const std::size_t mine = slice_of(bucket, links_.rank()).size();
  bucket.addends.resize(mine * static_cast<std::size_t>(links_.size()));
  std::vector<Outgoing> sent;
  std::vector<Incoming> received;
  for (int peer = 0; peer < links_.size(); ++peer) {
    if (peer == links_.rank()) continue;
    const std::span<T> theirs = slice_of(bucket, peer);
    if (adds(links_.rank()) && !theirs.empty()) sent.push_back({peer, std::as_bytes(theirs)});
    if (adds(peer) && mine > 0)
      received.push_back({peer, std::as_writable_bytes(addend(bucket, peer))});
  }
  if (sent.empty() && received.empty()) return;
  bucket.scattered = links_.start(sent, received, exchange_number(operation_, bucket.index, false));
}

template <class T>
void OrderedSum<T>::add(Bucket& bucket) const {
  const std::span<T> sum = slice_of(bucket, links_.rank());
  const std::span<T> into = last_ && !kept_ ? sum : bucket.carry;
  std::vector<std::span<const T>> terms;
  if (begun_ && into.data() != bucket.carry.data()) terms.push_back(bucket.carry);
  for (int peer = 0; peer < links_.size(); ++peer)
    if (adds(peer)) terms.push_back(peer == links_.rank() ? sum : addend(bucket, peer));
  add_terms<T>(into, begun_ && into.data() == bucket.carry.data(), terms);
}

template <class T>
void OrderedSum<T>::gather(Bucket& bucket) const {
  const std::span<T> mine = slice_of(bucket, links_.rank());
  std::vector<Outgoing> sent;
  std::vector<Incoming> received;
  for (int peer = 0; peer < links_.size(); ++peer) {
    if (peer == links_.rank()) continue;
    const std::span<T> theirs = slice_of(bucket, peer);
    if (!mine.empty()) sent.push_back({peer, std::as_bytes(mine)});
    if (!theirs.empty()) received.push_back({peer, std::as_writable_bytes(theirs)});
  }
  if (sent.empty() && received.empty()) return;
  bucket.gathered = links_.start(sent, received, exchange_number(operation_, bucket.index, true));
}

template void add_terms(std::span<float> into, bool begun,
                        std::span<const std::span<const float>> terms);
template void add_terms(std::span<double> into, bool begun,
                        std::span<const std::span<const double>> terms);
template class OrderedSum<float>;
template class OrderedSum<double>;

}  // namespace rl
