// GradientCodec: a slice of gradients in fewer bytes, and what these leave out.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "runtime/core/result.h"

namespace rl {

enum class GradientCompression { kNone, kFp16, kTopK };

/// "none", "fp16", "topk". kInvalidArgument: another name.
runtime::Result<GradientCompression> parse_gradient_compression(std::string_view name);

struct GradientCompressionOptions {
  GradientCompression scheme = GradientCompression::kNone;
  double topk_ratio = 0.01;  // of the values of a slice that kTopK sends; in (0, 1]

  bool is_on() const { return scheme != GradientCompression::kNone; }
};

/// Codes of one size for equally many values. Immutable; any thread.
class GradientCodec {
 public:
  virtual ~GradientCodec() = default;

  /// Bytes of the code of N values.
  virtual std::size_t bytes_of(std::size_t values) const = 0;

  /// Writes the code of `values` into `code`, of bytes_of(values.size()), and leaves in `values`
  /// what it lacks. For finite values the code's and the rest add up to what was there, exactly. A
  /// value that is not finite gives a code with one, and is no part of the rest.
  virtual void encode(std::span<float> values, std::span<std::byte> code) const = 0;

  /// Adds what the code of N values stands for.
  virtual void add(std::span<const std::byte> code, std::span<float> sum) const = 0;
};

/// Half precision, times a power of two of each slice: PyTorch's fp16_compress_hook with a scale.
/// The slice's largest value is then below the largest half, and small ones keep their bits.
class Fp16Codec final : public GradientCodec {
 public:
  std::size_t bytes_of(std::size_t values) const override;
  void encode(std::span<float> values, std::span<std::byte> code) const override;
  void add(std::span<const std::byte> code, std::span<float> sum) const override;
};

/// The values of largest magnitude, a share of each slice and at least one, as fp32 with their
/// places; of equal ones the first. Lin et al. 2018, "Deep Gradient Compression",
/// arXiv:1712.01887, without its momentum correction and warm-up.
class TopKCodec final : public GradientCodec {
 public:
  /// `ratio` is in (0, 1].
  explicit TopKCodec(double ratio);

  /// Values that are sent of N.
  std::size_t kept_of(std::size_t values) const;

  std::size_t bytes_of(std::size_t values) const override;
  void encode(std::span<float> values, std::span<std::byte> code) const override;
  void add(std::span<const std::byte> code, std::span<float> sum) const override;

 private:
  double ratio_;
};

/// Null for kNone.
std::unique_ptr<GradientCodec> make_gradient_codec(const GradientCompressionOptions& options);

}  // namespace rl
