// ChatGLM2 and 3: the layout that GLM-4's predecessors were published in, with names of Megatron's;
// arXiv:2210.02414, arXiv:2406.12793.
#include <nlohmann/json.hpp>

#include "rl/model/family_list.h"
#include "rl/model/json_fields.h"

namespace rl {
namespace {

constexpr std::int64_t kChatglmWidthMax = std::int64_t{1} << 20;

void read_chatglm(JsonFields& fields, const std::string& where, ModelConfig& config) {
  config.hidden_size = fields.integer("hidden_size", 1, kChatglmWidthMax);
  config.layers = fields.integer("num_layers", 1, 10'000);
  config.heads = fields.integer("num_attention_heads", 1, 1 << 14);
  if (!fields.status().ok()) return;
  const bool grouped = fields.boolean("multi_query_attention", false);
  config.kv_heads =
      grouped ? fields.integer("multi_query_group_num", 1, 1, config.heads) : config.heads;
  config.head_dim =
      fields.integer("kv_channels", config.hidden_size / config.heads, 4, kChatglmWidthMax);
  config.intermediate_size = fields.integer("ffn_hidden_size", 1, kChatglmWidthMax);
  config.vocab_size = fields.integer("padded_vocab_size", 1, std::int64_t{1} << 24);
  config.max_position_embeddings = fields.integer("seq_length", 2048, 1, std::int64_t{1} << 26);
  config.norm = fields.boolean("rmsnorm", true) ? NormKind::kRms : NormKind::kLayer;
  config.norm_eps = static_cast<float>(fields.number("layernorm_epsilon", 1e-5, 0.0));
  config.last_norm = fields.boolean("post_layer_norm", true);
  config.rotary_dim = config.head_dim / 2;
  config.rope_interleaved = true;
  // Long-context versions turn slower.
  config.rope.theta = 10000.0 * fields.number("rope_ratio", 1.0, 1e-6);
  config.activation = kernel::Activation::kSilu;
  const bool linear_bias = fields.boolean("add_bias_linear", false);
  config.attention_bias = fields.boolean("add_qkv_bias", false) || linear_bias;
  config.mlp_bias = linear_bias;
  config.tie_word_embeddings = fields.boolean("tie_word_embeddings", false);
  fields.only("apply_residual_connection_post_layernorm", false, "false is");
  fields.only("original_rope", true, "true is");
  fields.only("prefix_projection", false, "false is");
  if (fields.has("pre_seq_len")) fields.refuse("pre_seq_len", "models without prefix tuning are");
  if (fields.integer("quantization_bit", 0, 0, 64) != 0) fields.refuse("quantization_bit", "0 is");
}

void plan_chatglm(PlanBuilder& builder) {
  const ModelConfig& c = builder.config();
  builder.embedding("transformer.embedding.word_embeddings");
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string at = "transformer.encoder.layers." + std::to_string(layer) + ".";
    LayerPlan plan_chatglm;
    plan_chatglm.attention_norm = builder.norm(at + "input_layernorm", c.hidden_size);
    const LinearPlan qkv =
        builder.linear(at + "self_attention.query_key_value", c.query_size() + 2 * c.kv_size(),
                       c.hidden_size, {.bias = c.attention_bias});
    plan_chatglm.attention.q = qkv.part(0, c.query_size());
    plan_chatglm.attention.k = qkv.part(c.query_size(), c.kv_size());
    plan_chatglm.attention.v = qkv.part(c.query_size() + c.kv_size(), c.kv_size());
    plan_chatglm.attention.o = builder.linear(at + "self_attention.dense", c.hidden_size,
                                              c.query_size(), {.bias = c.mlp_bias});
    plan_chatglm.mlp_norm = builder.norm(at + "post_attention_layernorm", c.hidden_size);
    const LinearPlan gate_up = builder.linear(at + "mlp.dense_h_to_4h", 2 * c.intermediate_size,
                                              c.hidden_size, {.bias = c.mlp_bias});
    plan_chatglm.mlp.gate = gate_up.part(0, c.intermediate_size);
    plan_chatglm.mlp.up = gate_up.part(c.intermediate_size, c.intermediate_size);
    plan_chatglm.mlp.down = builder.linear(at + "mlp.dense_4h_to_h", c.hidden_size,
                                           c.intermediate_size, {.bias = c.mlp_bias});
    builder.plan.layers.push_back(std::move(plan_chatglm));
  }
  if (c.last_norm)
    builder.plan.last_norm = builder.norm("transformer.encoder.final_layernorm", c.hidden_size);
  builder.lm_head("transformer.output_layer");
}

bool ignorable_chatglm(const ModelConfig& config, std::string_view tensor) {
  return ignorable_usual(config, tensor) || tensor.ends_with("rotary_pos_emb.inv_freq");
}

}  // namespace

const Family kChatGlmFamily{.model_type = "chatglm",
                            .architecture = "ChatGLMForConditionalGeneration",
                            .read = read_chatglm,
                            .plan = plan_chatglm,
                            .ignorable = ignorable_chatglm};

}  // namespace rl
