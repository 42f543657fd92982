// Llama 2, 3, 3.x and SmolLM: RMS norm before each block, rotary positions, grouped-query
// attention, SiLU-gated MLP.
#include <nlohmann/json.hpp>

#include "rl/model/family_list.h"
#include "rl/model/json_fields.h"

namespace rl {
namespace {

void read_llama(JsonFields& fields, const std::string& where, ModelConfig& config) {
  read_common(fields, where, config);
  read_activation(fields, "hidden_act", "silu", config);
  config.attention_bias = fields.boolean("attention_bias", false);
  config.mlp_bias = fields.boolean("mlp_bias", false);
  fields.only("rope_interleaved", false, "false is");
}

void plan_llama_family(PlanBuilder& builder) {
  const ModelConfig& config = builder.config();
  plan_llama(builder, {.qkv_bias = config.attention_bias,
                       .out_bias = config.attention_bias,
                       .mlp_bias = config.mlp_bias});
}

}  // namespace

const Family kLlamaFamily{.model_type = "llama",
                          .architecture = "LlamaForCausalLM",
                          .gguf_architecture = "llama",
                          .read = read_llama,
                          .plan = plan_llama_family,
                          .ignorable = ignorable_usual};

}  // namespace rl
