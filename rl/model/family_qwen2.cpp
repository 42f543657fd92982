// Qwen2 and Qwen2.5: Llama with biases in queries, keys and values; Yang et al. 2024,
// arXiv:2407.10671.
#include <nlohmann/json.hpp>

#include "rl/model/family_list.h"
#include "rl/model/json_fields.h"

namespace rl {
namespace {

void read_qwen2(JsonFields& fields, const std::string& where, ModelConfig& config) {
  read_common(fields, where, config, {.kv_heads = 32, .positions = 32768});
  read_activation(fields, "hidden_act", "silu", config);
  read_windows(fields, config, WindowRule::kByLayer, 4096);
}

void plan_qwen2(PlanBuilder& builder) { plan_llama(builder, {.qkv_bias = true}); }

}  // namespace

const Family kQwen2Family{.model_type = "qwen2",
                          .architecture = "Qwen2ForCausalLM",
                          .gguf_architecture = "qwen2",
                          .read = read_qwen2,
                          .plan = plan_qwen2,
                          .ignorable = ignorable_usual};

}  // namespace rl
