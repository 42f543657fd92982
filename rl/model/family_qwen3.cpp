// Qwen3, dense and with experts: no biases, and a norm of each head's queries and keys; Yang et al.
// 2025, arXiv:2505.09388.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "rl/model/family_list.h"
#include "rl/model/json_fields.h"

namespace rl {
namespace {

void read_shared(JsonFields& fields, const std::string& where, ModelConfig& config,
                 const ConfigDefaults& defaults) {
  read_common(fields, where, config, defaults);
  read_activation(fields, "hidden_act", "silu", config);
  config.attention_bias = fields.boolean("attention_bias", false);
  config.query_key_norm = true;
}

void read_qwen3(JsonFields& fields, const std::string& where, ModelConfig& config) {
  read_shared(fields, where, config, {.kv_heads = 32, .head_dim = 128, .positions = 32768});
  read_windows(fields, config, WindowRule::kByLayer, 4096);
}

void read_moe(JsonFields& fields, const std::string& where, ModelConfig& config) {
  read_shared(fields, where, config, {.kv_heads = 4, .positions = 32768});
  read_windows(fields, config, WindowRule::kIfUsed, 4096);
  MoeConfig moe;
  moe.experts =
      fields.integer(fields.has("num_experts") ? "num_experts" : "num_local_experts", 128, 1, 4096);
  moe.experts_per_token =
      fields.integer("num_experts_per_tok", std::min<std::int64_t>(8, moe.experts), 1, moe.experts);
  moe.intermediate_size = fields.integer("moe_intermediate_size", 768, 1, std::int64_t{1} << 20);
  moe.normalized = fields.boolean("norm_topk_prob", false);
  config.moe = moe;
  const std::int64_t step = fields.integer("decoder_sparse_step", 1, 1, 10'000);
  const std::vector<std::int32_t> dense = fields.token_ids("mlp_only_layers");
  for (std::int64_t layer = 0; layer < config.layers && fields.status().ok(); ++layer) {
    config.dense_layers.push_back((layer + 1) % step != 0 ||
                                  std::find(dense.begin(), dense.end(), layer) != dense.end());
  }
}

void plan_qwen3(PlanBuilder& builder) {
  const bool bias = builder.config().attention_bias;
  plan_llama(builder, {.qkv_bias = bias, .out_bias = bias});
}

}  // namespace

const Family kQwen3Family{.model_type = "qwen3",
                          .architecture = "Qwen3ForCausalLM",
                          .gguf_architecture = "qwen3",
                          .read = read_qwen3,
                          .plan = plan_qwen3,
                          .ignorable = ignorable_usual};
const Family kQwen3MoeFamily{.model_type = "qwen3_moe",
                             .architecture = "Qwen3MoeForCausalLM",
                             .read = read_moe,
                             .plan = plan_qwen3,
                             .ignorable = ignorable_usual};

}  // namespace rl
