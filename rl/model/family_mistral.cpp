// Mistral: Llama whose tokens see a window (Jiang et al. 2023, arXiv:2310.06825).
#include <nlohmann/json.hpp>

#include "rl/model/family_list.h"
#include "rl/model/json_fields.h"

namespace rl {
namespace {

void read_mistral(JsonFields& fields, const std::string& where, ModelConfig& config) {
  read_common(fields, where, config, {.kv_heads = 8, .positions = 131072});
  read_activation(fields, "hidden_act", "silu", config);
  read_windows(fields, config, WindowRule::kAllLayers, 4096);
}

void plan_mistral(PlanBuilder& builder) { plan_llama(builder); }

}  // namespace

const Family kMistralFamily{.model_type = "mistral",
                            .architecture = "MistralForCausalLM",
                            .read = read_mistral,
                            .plan = plan_mistral,
                            .ignorable = ignorable_usual};

}  // namespace rl
