#include "rl/optim/compressed_sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "rl/profile/recorder.h"
#include "runtime/core/check.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

// Three buckets are on their way. The codes of one are to be added up, those of the one before to
// be sent back, and one comes back.
constexpr std::size_t kWindow = 3;

}  // namespace

CompressedSum::CompressedSum(Communicator& communicator, std::unique_ptr<GradientCodec> codec,
                             std::int64_t elements, std::span<const ArenaRange> homes,
                             const Options& options)
    : communicator_(communicator),
      codec_(std::move(codec)),
      plan_(homes.empty()
                ? SumPlan::of_buckets(static_cast<std::size_t>(elements), communicator.size(),
                                      options.bucket_bytes / sizeof(float))
                : SumPlan::of_homes(homes, options.bucket_bytes / sizeof(float))),
      gathers_(homes.empty()),
      residual_(static_cast<std::size_t>(elements)) {
  CHECK(codec_ != nullptr);
}

void CompressedSum::forget_residual() { std::ranges::fill(residual_, 0.0F); }

Status CompressedSum::sum(std::span<float> gradients) {
  CHECK(gradients.size() == residual_.size());
  const profile::Span span("compressed sum");
  const Result<bool> finite = all_finite(gradients);
  if (!finite.ok()) return finite.status();
  if (!*finite) {
    std::ranges::fill(gradients, std::numeric_limits<float>::quiet_NaN());
    return {};
  }
  const std::size_t count = plan_.buckets();
  std::array<Bucket, kWindow> window;
  for (std::size_t index = 0; index < count + kWindow - 1; ++index) {
    if (index < count) {
      Bucket& next = window[index % kWindow];
      next.index = index;
      scatter(gradients, next);
    }
    if (index >= 1 && index - 1 < count) {
      const Status added = add(gradients, window[(index - 1) % kWindow]);
      if (!added.ok()) return added;
    }
    if (index < 2) continue;
    const Status finished = finish(gradients, window[(index - 2) % kWindow]);
    if (!finished.ok()) return finished;
  }
  return {};
}

// With what is left of earlier ones, as it is about to be encoded.
Result<bool> CompressedSum::all_finite(std::span<const float> gradients) {
  constexpr std::uint32_t kExponent = 0x7f800000u;
  std::uint32_t beyond = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(gradients[i] + residual_[i]);
    beyond |= (bits & kExponent) == kExponent ? 1U : 0U;
  }
  const Result<std::vector<std::uint64_t>> all =
      communicator_.all_gather(1 - beyond, "whether gradients are finite");
  if (!all.ok()) return all.status();
  return std::ranges::find(*all, 0U) == all->end();
}

std::span<float> CompressedSum::slice_of(std::span<float> values, const Bucket& bucket,
                                         int rank) const {
  const SumPlan::Slice slice = plan_.slice(bucket.index, rank);
  return values.subspan(slice.begin, slice.size());
}

void CompressedSum::scatter(std::span<const float> gradients, Bucket& bucket) {
  const int ranks = communicator_.size();
  bucket.sent.resize(static_cast<std::size_t>(ranks));
  bucket.received.resize(static_cast<std::size_t>(ranks));
  const std::size_t mine = slice_of(residual_, bucket, communicator_.rank()).size();
  std::vector<Outgoing> sent;
  std::vector<Incoming> received;
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer == communicator_.rank()) continue;
    const std::span<float> rest = slice_of(residual_, bucket, peer);
    const float* gradient = gradients.data() + (rest.data() - residual_.data());
    for (std::size_t i = 0; i < rest.size(); ++i) rest[i] += gradient[i];
    std::vector<std::byte>& code = bucket.sent[static_cast<std::size_t>(peer)];
    code.resize(codec_->bytes_of(rest.size()));
    codec_->encode(rest, code);
    sent.push_back({peer, code});
    std::vector<std::byte>& theirs = bucket.received[static_cast<std::size_t>(peer)];
    theirs.resize(codec_->bytes_of(mine));
    received.push_back({peer, theirs});
  }
  bucket.scattered = communicator_.begin_exchange(sent, received, "codes of gradients");
}

// Codes become this rank's slice of the sum.
Status CompressedSum::add(std::span<float> gradients, Bucket& bucket) {
  if (const Status there = communicator_.finish(bucket.scattered); !there.ok()) return there;
  const std::span<float> mine = slice_of(gradients, bucket, communicator_.rank());
  std::vector<float> total(mine.size(), 0.0F);
  for (int peer = 0; peer < communicator_.size(); ++peer) {
    if (peer != communicator_.rank())
      codec_->add(bucket.received[static_cast<std::size_t>(peer)], total);
    else
      for (std::size_t i = 0; i < total.size(); ++i) total[i] += mine[i];
  }
  std::ranges::copy(total, mine.begin());
  if (gathers_) gather(mine, bucket);
  return {};
}

// This rank, too, goes on with what the code says.
void CompressedSum::gather(std::span<float> mine, Bucket& bucket) {
  const std::span<float> rest = slice_of(residual_, bucket, communicator_.rank());
  for (std::size_t i = 0; i < rest.size(); ++i) rest[i] += mine[i];
  bucket.sum_code.resize(sum_codec_.bytes_of(rest.size()));
  sum_codec_.encode(rest, bucket.sum_code);
  std::ranges::fill(mine, 0.0F);
  sum_codec_.add(bucket.sum_code, mine);
  std::vector<Outgoing> sent;
  std::vector<Incoming> received;
  for (int peer = 0; peer < communicator_.size(); ++peer) {
    if (peer == communicator_.rank()) continue;
    sent.push_back({peer, bucket.sum_code});
    std::vector<std::byte>& theirs = bucket.received[static_cast<std::size_t>(peer)];
    theirs.resize(sum_codec_.bytes_of(plan_.slice(bucket.index, peer).size()));
    received.push_back({peer, theirs});
  }
  bucket.gathered = communicator_.begin_exchange(sent, received, "codes of sums");
}

Status CompressedSum::finish(std::span<float> gradients, Bucket& bucket) {
  if (!gathers_) return {};
  if (const Status there = communicator_.finish(bucket.gathered); !there.ok()) return there;
  for (int peer = 0; peer < communicator_.size(); ++peer) {
    if (peer == communicator_.rank()) continue;
    const std::span<float> theirs = slice_of(gradients, bucket, peer);
    std::ranges::fill(theirs, 0.0F);
    sum_codec_.add(bucket.received[static_cast<std::size_t>(peer)], theirs);
  }
  return {};
}

}  // namespace rl
