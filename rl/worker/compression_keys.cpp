#include "rl/worker/compression_keys.h"

#include <optional>

#include "rl/worker/policy_options.h"
#include "rl/worker/team_keys.h"
#include "rl/worker/zero_level.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

constexpr const char* kLeavesKey = "trainer.gradient_leaves";

// Keys that make workers share their passes, with their numbers; empty: they make them alone.
std::string sharing_text(const Config& config, const std::string& role) {
  std::string text;
  for (const std::string& key : sharing_keys(config, role))
    text += (text.empty() ? "" : ", ") + key + "=" + config.find(key)->dump();
  return text;
}

Status check_company(const Config& config, const std::string& role) {
  const auto refuse = [&](const std::string& other) {
    return config.out_of_range(kCompressionKey, "none with " + other);
  };
  const std::string level_key = zero_level_key(role);
  if (!is_zero_level_auto(config, role)) {
    const Result<std::int64_t> level = config.get_int(level_key);
    if (!level.ok()) return level.status();
    if (*level > static_cast<std::int64_t>(ZeroLevel::kMoments))
      return refuse(level_key + "=" + std::to_string(*level) +
                    ", which adds gradients up unit by unit: take 0 or 1");
  }
  if (const std::string sharing = sharing_text(config, role); !sharing.empty())
    return refuse(sharing + ": workers that share passes add gradients up unit by unit");
  const Result<std::optional<std::int64_t>> leaves = config.find_int(kLeavesKey);
  if (!leaves.ok()) return leaves.status();
  if (*leaves)
    return refuse(std::string(kLeavesKey) + "=" + std::to_string(**leaves) +
                  ", which promises the same numbers on any number of workers");
  return {};
}

}  // namespace

Result<GradientCompressionOptions> compression_from_config(const Config& config,
                                                           const std::string& role) {
  ConfigReader read(config);
  const std::string name = read.get_string(kCompressionKey);
  GradientCompressionOptions options;
  options.topk_ratio = read.get_float(kTopKRatioKey);
  if (!read.status().ok()) return read.status();
  const Result<GradientCompression> scheme = parse_gradient_compression(name);
  if (!scheme.ok()) return scheme.status().with_context(kCompressionKey);
  options.scheme = *scheme;
  if (!(options.topk_ratio > 0.0 && options.topk_ratio <= 1.0))
    return config.out_of_range(kTopKRatioKey, "above 0 and at most 1");
  if (!options.is_on()) return options;
  if (Status fits = check_company(config, role); !fits.ok()) return fits;
  return options;
}

std::string compression_text(const Config& config, std::int64_t workers) {
  const std::string name = config.get_string(kCompressionKey).value_or("none");
  if (workers > 1 || name == "none") return {};
  return std::string(kCompressionKey) + "=" + name + " has no effect with one worker";
}

}  // namespace rl
