// RopeConfig: a checkpoint's rotary positions, and the stretching of its context.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace rl {

class JsonFields;

/// Rotary position embeddings; Su et al. 2021, arXiv:2104.09864. Every pair of dimensions turns by
/// position * theta^(-2i/d), possibly slowed down to stretch the context.
struct RopeConfig {
  enum class Kind {
    kDefault,
    kLinear,    // every frequency divided by `factor`
    kDynamic,   // theta grows with the sequence once it is longer than the original context
                // (NTK-aware)
    kLlama3,    // low frequencies divided by `factor`, high ones kept, a smooth ramp between
                // (Llama 3.1)
    kYarn,      // the same by dimension, and a temperature of attention; Peng et al. 2023,
                // arXiv:2309.00071
    kLongRope,  // a divisor for each pair, others for long sequences than for short; Ding et al.
                // 2024, arXiv:2402.13753
  };
  Kind kind = Kind::kDefault;
  double theta = 10000.0;
  double factor = 1.0;
  double low_freq_factor = 1.0;                       // kLlama3
  double high_freq_factor = 4.0;                      // kLlama3
  std::int64_t original_max_position_embeddings = 0;  // the context before stretching, in tokens
  double beta_fast =
      32.0;  // kYarn: turns within the original context above which a pair stays as it is
  double beta_slow = 1.0;         // kYarn: below which it is divided
  bool truncate = true;           // kYarn: the ramp begins and ends at whole dimensions
  double attention_factor = 1.0;  // kYarn, kLongRope: cosines and sines are multiplied by it
  double mscale_all_dim = 0.0;    // kYarn in DeepSeek's models: a further scale of attention
  std::vector<float> short_factors = {};  // kLongRope, one a pair
  std::vector<float> long_factors = {};

  bool operator==(const RopeConfig&) const = default;

  /// 0.1 mscale ln(factor) + 1, or 1 for a factor up to 1: YaRN's temperature.
  static double yarn_mscale(double factor, double mscale);
};

/// What counts where a file says nothing.
struct RopeDefaults {
  double theta = 10000.0;
  std::int64_t original_positions =
      0;  // of original_max_position_embeddings next to the object; 0: what the object says
};

/// The key of the object to read: "rope_scaling", the form before transformers 5, counts where both
/// are given, as it does there.
std::string rope_object(JsonFields& fields);

/// Reads `rope_parameters`, or `rope_theta` next to `rope_scaling` as before transformers 5;
/// problems stay in `fields`. `positions` is the model's max_position_embeddings, `rotary_dim` how
/// many dimensions of a head turn.
RopeConfig read_rope(JsonFields& fields, const std::string& where, std::int64_t positions,
                     std::int64_t rotary_dim, const RopeDefaults& defaults = {});

/// Writes `rope_theta` and `rope_scaling`, which transformers 4 and 5 read. Not for kLongRope,
/// whose configs are kept as they came.
void write_rope(const RopeConfig& rope, nlohmann::json& out);

}  // namespace rl
