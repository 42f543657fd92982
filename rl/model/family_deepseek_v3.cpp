// DeepSeek-V3 (arXiv:2412.19437) and Kimi K2: latent attention, and experts in groups with a shared
// one, chosen without a loss to balance them.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "rl/model/family_list.h"
#include "rl/model/json_fields.h"

namespace rl {
namespace {

constexpr std::int64_t kDeepseekV3WidthMax = std::int64_t{1} << 20;

void read_deepseek_v3(JsonFields& fields, const std::string& where, ModelConfig& config) {
  LatentConfig latent;
  latent.query_rank = fields.is_null("q_lora_rank")
                          ? 0
                          : fields.integer("q_lora_rank", 1536, 1, kDeepseekV3WidthMax);
  latent.kv_rank = fields.integer("kv_lora_rank", 512, 1, kDeepseekV3WidthMax);
  latent.nope_dim = fields.integer("qk_nope_head_dim", 128, 1, kDeepseekV3WidthMax);
  latent.value_dim = fields.integer("v_head_dim", 128, 1, kDeepseekV3WidthMax);
  config.rotary_dim = fields.integer("qk_rope_head_dim", 64, 2, kDeepseekV3WidthMax);
  config.rope_interleaved = fields.boolean("rope_interleave", true);
  read_common(fields, where, config, {.positions = 4096});
  config.kv_heads = config.heads;  // whatever the file says: there is one set of latents
  config.head_dim = latent.nope_dim + config.rotary_dim;
  config.latent = latent;
  if (latent.value_dim > config.head_dim)
    fields.refuse("v_head_dim", "one up to qk_nope_head_dim + qk_rope_head_dim is");
  read_activation(fields, "hidden_act", "silu", config);
  config.attention_bias = fields.boolean("attention_bias", false);
  if (config.rope.kind == RopeConfig::Kind::kYarn && config.rope.mscale_all_dim > 0.0) {
    const double mscale = RopeConfig::yarn_mscale(config.rope.factor, config.rope.mscale_all_dim);
    config.attention_scale = mscale * mscale / std::sqrt(static_cast<double>(config.head_dim));
  }

  if (config.rope.kind != RopeConfig::Kind::kDefault &&
      config.rope.kind != RopeConfig::Kind::kYarn &&
      fields.object(rope_object(fields)).contains("mscale_all_dim")) {
    fields.refuse(rope_object(fields), "mscale_all_dim with yarn is");
  }

  MoeConfig moe;
  moe.experts = fields.integer("n_routed_experts", 256, 1, 4096);
  moe.experts_per_token =
      fields.integer("num_experts_per_tok", std::min<std::int64_t>(8, moe.experts), 1, moe.experts);
  moe.intermediate_size = fields.integer("moe_intermediate_size", 2048, 1, kDeepseekV3WidthMax);
  moe.shared_intermediate_size =
      fields.integer("n_shared_experts", 1, 0, 64) * moe.intermediate_size;
  moe.score = MoeConfig::Score::kSigmoid;
  moe.corrected = true;
  moe.normalized = fields.boolean("norm_topk_prob", true);
  moe.scaling = fields.number("routed_scaling_factor", 2.5, 0.0);
  moe.groups = fields.integer("n_group", std::min<std::int64_t>(8, moe.experts), 1, moe.experts);
  moe.groups_per_token =
      fields.integer("topk_group", std::min<std::int64_t>(4, moe.groups), 1, moe.groups);
  if (moe.experts % moe.groups != 0 || moe.experts / moe.groups < 2)
    fields.refuse("n_group", "a divisor of n_routed_experts that leaves two or more in a group is");
  if (moe.groups_per_token * (moe.experts / moe.groups) < moe.experts_per_token)
    fields.refuse("topk_group", "enough groups for num_experts_per_tok are");
  fields.only("scoring_func", "sigmoid", "sigmoid is");
  fields.only("topk_method", "noaux_tc", "noaux_tc is");
  fields.only("moe_layer_freq", 1, "1 is");
  config.moe = moe;
  const std::int64_t dense = fields.integer("first_k_dense_replace", 3, 0, 10'000);
  for (std::int64_t layer = 0; layer < config.layers && fields.status().ok(); ++layer)
    config.dense_layers.push_back(layer < dense);
}

void plan_deepseek_v3(PlanBuilder& builder) {
  const ModelConfig& c = builder.config();
  const LatentConfig& latent = *c.latent;
  builder.embedding("model.embed_tokens");
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    LayerPlan plan_deepseek_v3;
    plan_deepseek_v3.attention_norm = builder.norm(at + "input_layernorm", c.hidden_size);
    AttentionPlan& attention = plan_deepseek_v3.attention;
    if (latent.query_rank > 0) {
      attention.q_down = builder.linear(at + "self_attn.q_a_proj", latent.query_rank, c.hidden_size,
                                        {.bias = c.attention_bias});
      attention.q_down_norm = builder.rms_norm(at + "self_attn.q_a_layernorm", latent.query_rank);
      attention.q = builder.linear(at + "self_attn.q_b_proj", c.query_size(), latent.query_rank);
    } else {
      attention.q = builder.linear(at + "self_attn.q_proj", c.query_size(), c.hidden_size);
    }
    attention.kv_down =
        builder.linear(at + "self_attn.kv_a_proj_with_mqa", latent.kv_rank + c.rotary_dim,
                       c.hidden_size, {.bias = c.attention_bias});
    attention.kv_down_norm = builder.rms_norm(at + "self_attn.kv_a_layernorm", latent.kv_rank);
    attention.kv_up = builder.linear(
        at + "self_attn.kv_b_proj", c.heads * (latent.nope_dim + latent.value_dim), latent.kv_rank);
    attention.o = builder.linear(at + "self_attn.o_proj", c.hidden_size, c.heads * latent.value_dim,
                                 {.bias = c.attention_bias});
    plan_deepseek_v3.mlp_norm = builder.norm(at + "post_attention_layernorm", c.hidden_size);
    if (c.has_experts(layer))
      plan_deepseek_v3.experts = plan_experts(builder, at + "mlp");
    else
      plan_deepseek_v3.mlp = plan_gated_mlp(builder, at + "mlp", c.intermediate_size);
    builder.plan.layers.push_back(std::move(plan_deepseek_v3));
  }
  builder.plan.last_norm = builder.norm("model.norm", c.hidden_size);
  builder.lm_head("lm_head");
}

/// Layers beyond the model's predict further tokens, in training alone.
bool ignorable_deepseek_v3(const ModelConfig& config, std::string_view tensor) {
  constexpr std::string_view kLayers = "model.layers.";
  if (tensor.starts_with(kLayers) &&
      std::atoll(tensor.substr(kLayers.size()).data()) >= config.layers)
    return true;
  return ignorable_usual(config, tensor);
}

}  // namespace

const Family kDeepseekV3Family{.model_type = "deepseek_v3",
                               .architecture = "DeepseekV3ForCausalLM",
                               .read = read_deepseek_v3,
                               .plan = plan_deepseek_v3,
                               .ignorable = ignorable_deepseek_v3};
const Family kKimiK2Family{.model_type = "kimi_k2",
                           .architecture = "DeepseekV3ForCausalLM",
                           .read = read_deepseek_v3,
                           .plan = plan_deepseek_v3,
                           .ignorable = ignorable_deepseek_v3};

}  // namespace rl
