// How many workers share each pass of a role (tensor parallelism), as a configuration says it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rl/config/config.h"
#include "rl/model/model_config.h"
#include "runtime/core/result.h"

namespace rl {

/// Of all roles that have no number of their own.
inline constexpr const char* kTensorRanksKey = "parallel_config.tensor_parallel_size";

/// A role's own key: "critic.megatron.tensor_model_parallel_size".
std::string tensor_ranks_key(const std::string& role);

/// 1: each worker makes its passes alone. A role's own key counts with strategy=megatron (a stage's
/// always), and before kTensorRanksKey. kInvalidArgument: below 1; above 1 with an adapter, with
/// optimizer=Muon, on another device than the CPU.
runtime::Result<std::int64_t> tensor_ranks_from_config(const Config& config,
                                                       const std::string& role);

/// "critic: 2 teams of 2 workers that share each pass"; empty: each worker makes its passes alone.
std::string teams_text(const Config& config, const std::string& role, std::int64_t workers);

/// Keys of a strategy that is not chosen, and that are set: a line each, for people.
std::vector<std::string> unused_strategy_keys(const Config& config, const std::string& role);

/// Whether so many workers can share a model's passes. kInvalidArgument names the role's key: they
/// do not divide the workers, or the model's key heads are too few.
runtime::Status check_tensor_ranks(const Config& config, const std::string& role,
                                   const ModelConfig& model, std::int64_t workers);

}  // namespace rl
