// LoraConfig: a LoRA adapter's shape and scale, as in PEFT's adapter_config.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// Low-rank adaptation: y = W x + scale * B A x with A [rank, in] and B [out, rank]; Hu et al.
/// 2021, arXiv:2106.09685. The weights W stay as they are. A value.
struct LoraConfig {
  std::int64_t rank = 8;
  double alpha = 8.0;  // scale is alpha / rank
  bool rank_stabilized =
      false;  // scale is alpha / sqrt(rank) instead; Kalajdzievski 2023, arXiv:2312.03732
  double dropout =
      0.0;  // share of an adapter's inputs that is left out at random while it is trained
  std::vector<std::string> target_modules = {
      "all-linear"};  // modules of that name, or whose name ends in ".name"; all-linear: of all
                      // blocks
  std::string target_pattern = {};  // a regular expression over whole names, instead of the list
  std::vector<std::string> exclude_modules = {};
  std::vector<std::int64_t> layers = {};  // only of these blocks; empty: of all
  // Other ranks and alphas by a regular expression that a name ends in; of several that fit the
  // first counts.
  std::vector<std::pair<std::string, std::int64_t>> rank_pattern = {};
  std::vector<std::pair<std::string, double>> alpha_pattern = {};
  std::string base_model = {};  // the folder or hub name that it was made for; may be empty

  /// Reads `adapter_config.json` in a folder, or that file. kNotFound; kInvalidArgument: not JSON,
  /// a wrong type or value; kUnimplemented: a kind of adapter (DoRA, trained biases, ...) that
  /// would be computed wrongly, by name.
  static runtime::Result<LoraConfig> load(const std::filesystem::path& folder);
  static runtime::Result<LoraConfig> from_json(const nlohmann::ordered_json& json,
                                               std::string_view where);

  /// As PEFT reads it. from_json(to_json()) gives an equal config.
  nlohmann::ordered_json to_json() const;

  /// Errors: kInvalidArgument, by the name of the field in adapter_config.json.
  runtime::Status validate() const;

  bool operator==(const LoraConfig&) const = default;
};

}  // namespace rl
