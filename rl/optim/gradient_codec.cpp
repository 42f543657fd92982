#include "rl/optim/gradient_codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "rl/weights/convert.h"
#include "runtime/core/check.h"

namespace rl {

using runtime::Result;

namespace {

constexpr std::uint32_t kMagnitude = 0x7fffffffu;
constexpr std::uint32_t kInfinity = 0x7f800000u;

// Of finite values and infinities their order is that of the magnitudes; NaN is above.
std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & kMagnitude;
}

std::uint32_t largest_magnitude(std::span<const float> values) {
  std::uint32_t largest = 0;
  for (const float value : values) largest = std::max(largest, magnitude_bits(value));
  return largest;
}

// Values whose halves are made at a time, in the cache.
constexpr std::size_t kChunk = 1024;

struct HalfScale {
  float scale = 1.0F;
  float limit = 0x1p15F;  // of the magnitude of what is rounded
};

// That power of two times the largest magnitude is at least 2^14 and below 2^15. Rounded it is no
// infinite half, and what is 2^28 times smaller is a normal one. Nor may what is rounded up become
// an infinite float.
HalfScale half_scale(std::uint32_t largest) {
  if (largest == 0) return {};
  constexpr float kHalfBelow = 0x1.ffcp14F;
  const int exponent = std::ilogb(std::bit_cast<float>(largest));
  return {std::ldexp(1.0F, std::min(14 - exponent, 127)), exponent == 127 ? kHalfBelow : 0x1p15F};
}

}  // namespace

Result<GradientCompression> parse_gradient_compression(std::string_view name) {
  if (name == "none") return GradientCompression::kNone;
  if (name == "fp16") return GradientCompression::kFp16;
  if (name == "topk") return GradientCompression::kTopK;
  return runtime::invalid_argument("no compression of gradients '" + std::string(name) +
                                   "': use none, fp16 or topk");
}

// What the halves were divided by, then the halves.
std::size_t Fp16Codec::bytes_of(std::size_t values) const {
  return values == 0 ? 0 : sizeof(float) + values * sizeof(std::uint16_t);
}

// Products with a power of two are exact where the half is not 0, and a difference to what a value
// was rounded to is.
void Fp16Codec::encode(std::span<float> values, std::span<std::byte> code) const {
  CHECK(code.size() == bytes_of(values.size()));
  if (values.empty()) return;
  const std::uint32_t largest = largest_magnitude(values);
  const bool is_finite = largest < kInfinity;
  const auto [scale, limit] = is_finite ? half_scale(largest) : HalfScale();
  const float back = is_finite ? 1.0F / scale : std::numeric_limits<float>::quiet_NaN();
  std::memcpy(code.data(), &back, sizeof back);
  std::byte* const halves = code.data() + sizeof back;
  if (!is_finite) {
    std::memset(halves, 0, values.size() * sizeof(std::uint16_t));
    std::ranges::fill(values, 0.0F);
    return;
  }
  std::array<float, kChunk> scaled;
  for (std::size_t begin = 0; begin < values.size(); begin += kChunk) {
    const std::span<float> chunk = values.subspan(begin, std::min(kChunk, values.size() - begin));
    for (std::size_t i = 0; i < chunk.size(); ++i)
      scaled[i] = std::min(std::max(chunk[i] * scale, -limit), limit);
    const std::span<float> part = std::span(scaled).first(chunk.size());
    std::byte* const into = halves + begin * sizeof(std::uint16_t);
    convert_from_f32(DType::kF16, part, into);
    convert_to_f32(DType::kF16, into, part);
    for (std::size_t i = 0; i < chunk.size(); ++i) chunk[i] -= scaled[i] * back;
  }
}

void Fp16Codec::add(std::span<const std::byte> code, std::span<float> sum) const {
  CHECK(code.size() == bytes_of(sum.size()));
  if (sum.empty()) return;
  float back = 0.0F;
  std::memcpy(&back, code.data(), sizeof back);
  const std::byte* const halves = code.data() + sizeof back;
  std::array<float, kChunk> scaled;
  for (std::size_t begin = 0; begin < sum.size(); begin += kChunk) {
    const std::span<float> chunk = sum.subspan(begin, std::min(kChunk, sum.size() - begin));
    convert_to_f32(DType::kF16, halves + begin * sizeof(std::uint16_t),
                   std::span(scaled).first(chunk.size()));
    for (std::size_t i = 0; i < chunk.size(); ++i) chunk[i] += scaled[i] * back;
  }
}

namespace {

// The values to send: all above a magnitude, and of those that have it the first ones.
struct Threshold {
  std::uint32_t magnitude = 0;
  std::size_t ties = 0;
};

// By their upper bits, then by the lower ones of those that are on the border: two counts of all
// values, whatever they are.
Threshold threshold_of(std::span<const float> values, std::size_t kept) {
  constexpr int kLowBits = 16;
  constexpr std::uint32_t kLow = (1u << kLowBits) - 1;
  std::vector<std::size_t> counts(std::size_t{1} << kLowBits);  // of 15 bits above and 16 below
  // The place where the counts from above reach what is left to take, which becomes what is left
  // there.
  const auto border = [&](std::size_t& left) {
    std::size_t at = counts.size() - 1;
    while (counts[at] < left) left -= counts[at--];
    return static_cast<std::uint32_t>(at);
  };
  std::size_t left = kept;
  for (const float value : values) ++counts[magnitude_bits(value) >> kLowBits];
  const std::uint32_t high = border(left);
  std::ranges::fill(counts, 0);
  for (const float value : values) {
    const std::uint32_t bits = magnitude_bits(value);
    if (bits >> kLowBits == high) ++counts[bits & kLow];
  }
  const std::uint32_t low = border(left);
  return {high << kLowBits | low, left};
}

}  // namespace

TopKCodec::TopKCodec(double ratio) : ratio_(ratio) {
  CHECK(ratio > 0.0);
  CHECK(ratio <= 1.0);
}

std::size_t TopKCodec::kept_of(std::size_t values) const {
  const double kept = std::ceil(static_cast<double>(values) * ratio_);
  return std::min(values, static_cast<std::size_t>(kept));
}

std::size_t TopKCodec::bytes_of(std::size_t values) const {
  return kept_of(values) * (sizeof(std::uint32_t) + sizeof(float));
}

// All places, then all values.
void TopKCodec::encode(std::span<float> values, std::span<std::byte> code) const {
  CHECK(values.size() <= std::numeric_limits<std::uint32_t>::max());
  CHECK(code.size() == bytes_of(values.size()));
  if (values.empty()) return;
  const std::size_t kept = kept_of(values.size());
  const Threshold border = threshold_of(values, kept);
  const std::uint32_t threshold = border.magnitude;
  std::size_t ties = border.ties;
  std::byte* place = code.data();
  std::byte* sent = place + kept * sizeof(std::uint32_t);
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    const std::uint32_t bits = magnitude_bits(values[i]);
    if (bits < threshold) continue;
    if (bits == threshold) {
      if (ties == 0) continue;
      --ties;
    }
    std::memcpy(place, &i, sizeof i);
    std::memcpy(sent, &values[i], sizeof(float));
    place += sizeof i;
    sent += sizeof(float);
    values[i] = 0.0F;
  }
  if (threshold < kInfinity) return;
  for (float& value : values)
    if (magnitude_bits(value) >= kInfinity) value = 0.0F;
}

void TopKCodec::add(std::span<const std::byte> code, std::span<float> sum) const {
  CHECK(code.size() == bytes_of(sum.size()));
  const std::size_t kept = kept_of(sum.size());
  const std::byte* place = code.data();
  const std::byte* sent = place + kept * sizeof(std::uint32_t);
  for (std::size_t i = 0; i < kept; ++i) {
    std::uint32_t at = 0;
    float value = 0.0F;
    std::memcpy(&at, place + i * sizeof at, sizeof at);
    std::memcpy(&value, sent + i * sizeof value, sizeof value);
    // From another process: a place that is none shows as a gradient that is not finite.
    if (at < sum.size())
      sum[at] += value;
    else
      sum.front() = std::numeric_limits<float>::quiet_NaN();
  }
}

std::unique_ptr<GradientCodec> make_gradient_codec(const GradientCompressionOptions& options) {
  switch (options.scheme) {
    case GradientCompression::kNone: break;
    case GradientCompression::kFp16: return std::make_unique<Fp16Codec>();
    case GradientCompression::kTopK: return std::make_unique<TopKCodec>(options.topk_ratio);
  }
  return nullptr;
}

}  // namespace rl
