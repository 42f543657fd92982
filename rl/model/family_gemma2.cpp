// Gemma 2: norms before and after each block, windows in every other layer, capped scores and
// logits; arXiv:2408.00118.
#include <cmath>
#include <nlohmann/json.hpp>

#include "rl/model/family_list.h"
#include "rl/model/json_fields.h"

namespace rl {
namespace {

void read_gemma2(JsonFields& fields, const std::string& where, ModelConfig& config) {
  config.norm = NormKind::kRmsPlusOne;
  config.norm_place = NormPlace::kBoth;
  read_common(fields, where, config,
              {.kv_heads = 4, .head_dim = 256, .positions = 8192, .tied = true, .softcaps = true});
  read_activation(fields, "hidden_activation", "gelu_pytorch_tanh",
                  config);  // whatever the older hidden_act says
  config.embedding_scale = std::sqrt(static_cast<double>(config.hidden_size));
  config.attention_scale = 1.0 / std::sqrt(fields.number("query_pre_attn_scalar", 256.0, 1e-6));
  config.attention_softcap = fields.number(
      "attn_logit_softcapping", fields.is_null("attn_logit_softcapping") ? 0.0 : 50.0, 0.0);
  config.logit_softcap = fields.number("final_logit_softcapping",
                                       fields.is_null("final_logit_softcapping") ? 0.0 : 30.0, 0.0);
  fields.only("attention_bias", false, "weights without bias are");
  fields.only("use_bidirectional_attention", false, "causal attention is");
  read_windows(fields, config, WindowRule::kEveryOther, 4096);
}

void plan_gemma2(PlanBuilder& builder) {
  const ModelConfig& c = builder.config();
  builder.embedding("model.embed_tokens");
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    LayerPlan plan_gemma2;
    plan_gemma2.attention_norm = builder.norm(at + "input_layernorm", c.hidden_size);
    plan_gemma2.attention.q =
        builder.linear(at + "self_attn.q_proj", c.query_size(), c.hidden_size);
    plan_gemma2.attention.k = builder.linear(at + "self_attn.k_proj", c.kv_size(), c.hidden_size);
    plan_gemma2.attention.v = builder.linear(at + "self_attn.v_proj", c.kv_size(), c.hidden_size);
    plan_gemma2.attention.o =
        builder.linear(at + "self_attn.o_proj", c.hidden_size, c.query_size());
    plan_gemma2.attention_norm_after = builder.norm(at + "post_attention_layernorm", c.hidden_size);
    plan_gemma2.mlp_norm = builder.norm(at + "pre_feedforward_layernorm", c.hidden_size);
    plan_gemma2.mlp = plan_gated_mlp(builder, at + "mlp", c.intermediate_size);
    plan_gemma2.mlp_norm_after = builder.norm(at + "post_feedforward_layernorm", c.hidden_size);
    builder.plan.layers.push_back(std::move(plan_gemma2));
  }
  builder.plan.last_norm = builder.norm("model.norm", c.hidden_size);
  builder.lm_head("lm_head");
}

}  // namespace

const Family kGemma2Family{.model_type = "gemma2",
                           .architecture = "Gemma2ForCausalLM",
                           .read = read_gemma2,
                           .plan = plan_gemma2,
                           .ignorable = ignorable_usual};

}  // namespace rl
