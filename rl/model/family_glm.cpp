// GLM-4 and its 2025 revision ("glm4", with norms after the blocks too): half of each head turns,
// in interleaved pairs; arXiv:2406.12793.
#include <nlohmann/json.hpp>

#include "rl/model/family_list.h"
#include "rl/model/json_fields.h"

namespace rl {
namespace {

void read_glm(JsonFields& fields, const std::string& where, ModelConfig& config) {
  const std::int64_t head_dim = fields.integer("head_dim", 128, 2, std::int64_t{1} << 20);
  const bool says_share = fields.has("partial_rotary_factor") ||
                          fields.object(rope_object(fields)).contains("partial_rotary_factor");
  config.rotary_dim = says_share ? -1 : head_dim / 2;
  config.rope_interleaved = true;
  read_common(fields, where, config,
              {.kv_heads = 2,
               .head_dim = 128,
               .positions = 131072,
               .norm_eps = 1.5625e-7,
               .partial_rotary = true});
  read_activation(fields, "hidden_act", "silu", config);
  config.attention_bias = fields.boolean("attention_bias", true);
}

void read_glm4(JsonFields& fields, const std::string& where, ModelConfig& config) {
  config.norm_place = NormPlace::kBoth;
  read_glm(fields, where, config);
}

void plan_glm(PlanBuilder& builder) {
  plan_llama(builder, {.qkv_bias = builder.config().attention_bias, .fused_gate_up = true});
}

void plan_glm4(PlanBuilder& builder) {
  plan_glm(builder);
  const std::int64_t hidden = builder.config().hidden_size;
  for (std::size_t layer = 0; layer < builder.plan.layers.size(); ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    LayerPlan& plan_glm = builder.plan.layers[layer];
    plan_glm.attention_norm_after = builder.norm(at + "post_self_attn_layernorm", hidden);
    plan_glm.mlp_norm_after = builder.norm(at + "post_mlp_layernorm", hidden);
  }
}

}  // namespace

const Family kGlmFamily{.model_type = "glm",
                        .architecture = "GlmForCausalLM",
                        .read = read_glm,
                        .plan = plan_glm,
                        .ignorable = ignorable_usual};
const Family kGlm4Family{.model_type = "glm4",
                         .architecture = "Glm4ForCausalLM",
                         .read = read_glm4,
                         .plan = plan_glm4,
                         .ignorable = ignorable_usual};

}  // namespace rl
