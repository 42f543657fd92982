// The keys of a configuration by which the workers of a role share its passes: tensor, sequence,
// expert and pipeline parallelism.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rl/config/config.h"
#include "rl/mesh/pass_sharing.h"
#include "rl/model/model_config.h"
#include "runtime/core/result.h"

namespace rl {

/// The number of tensor-parallel ranks of all roles that have no number.
inline constexpr const char* kTensorRanksKey = "parallel_config.tensor_parallel_size";

/// The number of pipeline stages, likewise.
inline constexpr const char* kPipelineRanksKey = "parallel_config.pipeline_parallel_size";

/// A role's own keys: "critic.megatron.tensor_model_parallel_size",
/// "critic.ulysses_sequence_parallel_size", "critic.megatron.expert_model_parallel_size".
std::string tensor_ranks_key(const std::string& role);
std::string sequence_ranks_key(const std::string& role);
std::string expert_ranks_key(const std::string& role);
std::string pipeline_ranks_key(const std::string& role);
std::string pipeline_chunks_key(const std::string& role);

/// Keys below `megatron` count with strategy=megatron (a stage's always), and before the others.
/// Ranks that have their own experts share the rows of their passes as well. kInvalidArgument: a
/// number below 1, one above 1 on another device than the CPU, or two numbers of ranks that share
/// rows. Two numbers above 1 are an error as well, but for the stages of a pipeline, whose ranks
/// may share. So are several chunks of layers without several stages.
runtime::Result<PassSharing> pass_sharing_from_config(const Config& config,
                                                      const std::string& role);

/// "critic: 2 teams of 2 workers that share the rows of each pass"; empty: each worker makes its
/// passes alone.
std::string teams_text(const Config& config, const std::string& role, std::int64_t workers);

/// The keys that make teams of workers, the stages of a pipeline first. Empty: each worker makes
/// its passes alone, or the keys are refused.
std::vector<std::string> sharing_keys(const Config& config, const std::string& role);

/// Keys of a strategy that is not chosen, and that are set: a line each, for people.
std::vector<std::string> unused_strategy_keys(const Config& config, const std::string& role);

/// kInvalidArgument names the role's key: the teams do not divide the workers.
runtime::Status check_teams(const Config& config, const std::string& role, std::int64_t workers);

/// Whether N workers can share a model's passes. kInvalidArgument names the role's keys: that
/// of check_teams(), or the model's layers or key heads are too few.
runtime::Status check_pass_sharing(const Config& config, const std::string& role,
                                   const ModelConfig& model, std::int64_t workers);

}  // namespace rl
