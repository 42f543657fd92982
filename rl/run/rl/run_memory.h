// The memory that the processes of an RL run will take: its roles, and the sizes that decide each
// one's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "rl/actor/worker_slots.h"
#include "rl/config/config.h"
#include "rl/data/dataset.h"
#include "rl/feed/row_lengths.h"
#include "rl/model/model_config.h"
#include "rl/plan/memory_plan.h"
#include "rl/run/rl/trainer_options.h"
#include "rl/worker/policy_options.h"

namespace rl {

struct RunMemory {
  std::vector<RoleMemory> roles;        // on the host, the process itself included
  std::int64_t device_bytes = 0;        // of each device, where models are on one
  std::int64_t ahead_device_bytes = 0;  // of each that generates a step ahead
  std::vector<std::string> notes;       // what is not counted, and why
};

/// How long the data's rows are.
struct RunLengths {
  std::int64_t prompt_tokens = 0;                 // of the longest prompt; 0: not known
  std::optional<RowLengths> demonstrations = {};  // of a warm start; nothing: not known
};

/// What is not known is as long as may be, and so are responses. Reads the config.json of other
/// roles' models, where they are here. Errors: an adapter that does not fit, values of roles' keys.
runtime::Result<RunMemory> run_memory(const Config& config, const TrainerOptions& trainer,
                                      const PolicyOptions& policy, const ModelConfig& policy_model,
                                      const RunLengths& lengths, const SlotOptions& slots);

/// The first prompts of a data set, of which the longest counts.
inline constexpr std::int64_t kPromptsMeasured = 1000;

/// Tokens of the longest of the first kPromptsMeasured prompts, as the policy reads them. Errors: a
/// row that cannot be read, a model without a tokenizer.
runtime::Result<std::int64_t> longest_prompt(const Config& config,
                                             const std::filesystem::path& model,
                                             const Dataset& rows);

}  // namespace rl
