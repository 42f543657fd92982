// Phi-3 and Phi-4-mini: Llama with one weight for queries, keys and values and one for gate and up;
// Abdin et al. 2024, arXiv:2404.14219.
#include <nlohmann/json.hpp>

#include "rl/model/family_list.h"
#include "rl/model/json_fields.h"

namespace rl {
namespace {

void read_phi3(JsonFields& fields, const std::string& where, ModelConfig& config) {
  read_common(
      fields, where, config,
      {.positions = 4096, .norm_eps = 1e-5, .original_positions = 4096, .partial_rotary = true});
  read_activation(fields, "hidden_act", "silu", config);
  read_windows(fields, config, WindowRule::kAllLayers, 0);
}

void plan_phi3(PlanBuilder& builder) {
  plan_llama(builder, {.fused_qkv = true, .fused_gate_up = true});
}

}  // namespace

const Family kPhi3Family{.model_type = "phi3",
                         .architecture = "Phi3ForCausalLM",
                         .read = read_phi3,
                         .plan = plan_phi3,
                         .ignorable = ignorable_usual};

}  // namespace rl
