#include "rl/worker/team_keys.h"

#include <map>

#include "rl/model/pass_parts.h"
#include "rl/worker/policy_options.h"
#include "rl/worker/zero_level.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

bool is_megatron(const Config& config, const std::string& role) {
  if (role == kStageRole) return true;
  return config.find_string(role + ".strategy").value_or(std::nullopt) == "megatron";
}

// Ring attention's number of ranks, to Megatron.
std::string context_ranks_key(const std::string& role) {
  return role == kStageRole ? "engine.context_parallel_size"
                            : role + ".megatron.context_parallel_size";
}

bool is_number(const Config& config, const std::string& key) {
  const auto* value = config.find(key);
  return value != nullptr && value->is_number();
}

// A role's own number, where it has one.
std::string key_in_use(const Config& config, const std::string& role, const std::string& own,
                       const char* of_all) {
  return is_megatron(config, role) && is_number(config, own) ? own : of_all;
}

std::string tensor_key_in_use(const Config& config, const std::string& role) {
  return key_in_use(config, role, tensor_ranks_key(role), kTensorRanksKey);
}

std::string pipeline_key_in_use(const Config& config, const std::string& role) {
  return key_in_use(config, role, pipeline_ranks_key(role), kPipelineRanksKey);
}

// Both names say the same: the one above 1.
std::string sequence_key_in_use(const Config& config, const std::string& role) {
  const std::string context = context_ranks_key(role);
  const bool counts = is_megatron(config, role) && is_number(config, context);
  return counts && *config.find(context) != 1 ? context : sequence_ranks_key(role);
}

Result<std::int64_t> number_of(const Config& config, const std::string& key) {
  if (!is_number(config, key)) return 1;
  const Result<std::int64_t> ranks = config.get_int(key);
  if (ranks.ok() && *ranks < 1) return config.out_of_range(key, "at least 1");
  return ranks;
}

Result<std::int64_t> sequence_ranks(const Config& config, const std::string& role) {
  const std::string key = sequence_key_in_use(config, role), other = sequence_ranks_key(role);
  const Result<std::int64_t> ranks = number_of(config, key);
  if (!ranks.ok() || key == other) return ranks;
  const Result<std::int64_t> own = number_of(config, other);
  if (!own.ok() || *own == 1 || *own == *ranks) return own.ok() ? ranks : own;
  return config.out_of_range(
      key, "1 or as many as " + other + "=" + std::to_string(*own) + ", which means the same");
}

Status check_company(const Config& config, const std::string& role, const std::string& key) {
  const Result<std::optional<std::string>> device = training_device(config);
  if (!device.ok()) return device.status();
  if (*device) return config.out_of_range(key, "1 with trainer.device=" + **device);
  return {};
}

// The key that says how many ranks of a stage share passes.
std::string stage_key(const Config& config, const std::string& role, PassCut cut) {
  switch (cut) {
    case PassCut::kOutputs: break;
    case PassCut::kRows: return sequence_key_in_use(config, role);
    case PassCut::kRowsAndExperts: return expert_ranks_key(role);
  }
  return tensor_key_in_use(config, role);
}

// What makes teams larger than one, the stages first; empty: nothing does.
std::vector<std::string> team_keys(const Config& config, const std::string& role,
                                   const PassSharing& sharing) {
  std::vector<std::string> keys;
  if (sharing.stages > 1) keys.push_back(pipeline_key_in_use(config, role));
  if (sharing.ranks > 1) keys.push_back(stage_key(config, role, sharing.cut));
  return keys;
}

Result<std::int64_t> ranks_of(const Config& config, const std::string& role, PassCut cut) {
  if (cut == PassCut::kRows) return sequence_ranks(config, role);
  if (cut == PassCut::kRowsAndExperts && !is_megatron(config, role)) return 1;
  return number_of(config, stage_key(config, role, cut));
}

Result<std::int64_t> chunks_of(const Config& config, const std::string& role, std::int64_t stages) {
  const std::string key = pipeline_chunks_key(role);
  if (!is_megatron(config, role)) return 1;
  const Result<std::int64_t> chunks = number_of(config, key);
  if (!chunks.ok() || *chunks == 1 || stages > 1) return chunks;
  return config.out_of_range(key, "1 without several stages of a pipeline, whose number is " +
                                      pipeline_key_in_use(config, role));
}

// Experts are dealt to ranks that share rows as well.
bool go_together(const PassSharing& one, const PassSharing& other) {
  return one.cut == PassCut::kRows && other.cut == PassCut::kRowsAndExperts &&
         one.ranks == other.ranks;
}

}  // namespace

std::string tensor_ranks_key(const std::string& role) {
  return role == kStageRole ? "engine.tensor_model_parallel_size"
                            : role + ".megatron.tensor_model_parallel_size";
}

std::string sequence_ranks_key(const std::string& role) {
  return (role == kStageRole ? "engine" : role) + ".ulysses_sequence_parallel_size";
}

std::string expert_ranks_key(const std::string& role) {
  return role == kStageRole ? "engine.expert_model_parallel_size"
                            : role + ".megatron.expert_model_parallel_size";
}

std::string pipeline_ranks_key(const std::string& role) {
  return role == kStageRole ? "engine.pipeline_model_parallel_size"
                            : role + ".megatron.pipeline_model_parallel_size";
}

std::string pipeline_chunks_key(const std::string& role) {
  return role == kStageRole ? "engine.virtual_pipeline_model_parallel_size"
                            : role + ".megatron.virtual_pipeline_model_parallel_size";
}

Result<PassSharing> pass_sharing_from_config(const Config& config, const std::string& role) {
  PassSharing sharing;
  for (const PassCut cut : {PassCut::kOutputs, PassCut::kRows, PassCut::kRowsAndExperts}) {
    const Result<std::int64_t> ranks = ranks_of(config, role, cut);
    if (!ranks.ok()) return ranks.status();
    if (*ranks == 1) continue;
    const PassSharing other{.ranks = *ranks, .cut = cut};
    if (sharing.ranks > 1 && !go_together(sharing, other)) {
      const bool may_be_equal = sharing.cut == PassCut::kRows && cut == PassCut::kRowsAndExperts;
      return config.out_of_range(stage_key(config, role, cut),
                                 (may_be_equal ? "1 or as many as " : "1 with ") +
                                     stage_key(config, role, sharing.cut) + "=" +
                                     std::to_string(sharing.ranks));
    }
    sharing = other;
  }
  const Result<std::int64_t> stages = number_of(config, pipeline_key_in_use(config, role));
  if (!stages.ok()) return stages.status();
  sharing.stages = *stages;
  const Result<std::int64_t> chunks = chunks_of(config, role, sharing.stages);
  if (!chunks.ok()) return chunks.status();
  sharing.chunks = *chunks;
  if (sharing.team() == 1) return PassSharing();
  const std::string key = team_keys(config, role, sharing).front();
  if (Status status = check_company(config, role, key); !status.ok()) return status;
  return sharing;
}

namespace {

const std::map<PassCut, std::string> kShared = {
    {PassCut::kOutputs, "the outputs of each pass"},
    {PassCut::kRows, "the rows of each pass"},
    {PassCut::kRowsAndExperts, "the rows of each pass and the experts"},
};

}  // namespace

std::string teams_text(const Config& config, const std::string& role, std::int64_t workers) {
  const PassSharing sharing = pass_sharing_from_config(config, role).value_or(PassSharing());
  if (sharing.team() == 1) return {};
  const std::int64_t teams = workers / sharing.team();
  std::string text = (role == kStageRole ? "" : role + ": ") + std::to_string(teams) +
                     (teams == 1 ? " team of " : " teams of ") + std::to_string(sharing.team()) +
                     " workers that share ";
  if (sharing.stages == 1) return text + kShared.at(sharing.cut);
  text += "the layers of each pass";
  if (sharing.chunks > 1) text += ", " + std::to_string(sharing.chunks) + " chunks of them each";
  if (sharing.ranks == 1) return text;
  return text + ": " + std::to_string(sharing.stages) + " stages of " +
         std::to_string(sharing.ranks) + " that share " + kShared.at(sharing.cut);
}

std::vector<std::string> sharing_keys(const Config& config, const std::string& role) {
  return team_keys(config, role, pass_sharing_from_config(config, role).value_or(PassSharing()));
}

std::vector<std::string> unused_strategy_keys(const Config& config, const std::string& role) {
  std::vector<std::string> lines;
  if (is_megatron(config, role)) return lines;
  for (const std::string& key :
       {tensor_ranks_key(role), context_ranks_key(role), expert_ranks_key(role),
        pipeline_ranks_key(role), pipeline_chunks_key(role)}) {
    if (is_number(config, key) && *config.find(key) != 1)
      lines.push_back(key + " has no effect without " + role + ".strategy=megatron");
  }
  return lines;
}

Status check_teams(const Config& config, const std::string& role, std::int64_t workers) {
  const Result<PassSharing> sharing = pass_sharing_from_config(config, role);
  if (!sharing.ok() || workers % sharing->team() == 0) return sharing.status();
  const std::vector<std::string> keys = team_keys(config, role, *sharing);
  const std::string other =
      keys.size() > 1 ? " (times " + std::to_string(sharing->ranks) + " of " + keys[1] + ")" : "";
  return config.out_of_range(keys[0], "a divisor" + other + " of the number of workers, which is " +
                                          std::to_string(workers));
}

Status check_pass_sharing(const Config& config, const std::string& role, const ModelConfig& model,
                          std::int64_t workers) {
  if (Status divides = check_teams(config, role, workers); !divides.ok()) return divides;
  const PassSharing sharing = pass_sharing_from_config(config, role).value_or(PassSharing());
  std::string keys;
  for (const std::string& key : sharing_keys(config, role))
    keys += (keys.empty() ? "" : ", ") + key;
  if (sharing.chunks > 1) keys += ", " + pipeline_chunks_key(role);
  return check_pass_parts(model, sharing).with_context(keys);
}

}  // namespace rl
