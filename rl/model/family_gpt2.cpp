// GPT-2: layer norms, learned positions, biases everywhere, weights stored the other way round;
// Radford et al. 2019.
#include <nlohmann/json.hpp>

#include "rl/model/family_list.h"
#include "rl/model/json_fields.h"

namespace rl {
namespace {

constexpr std::int64_t kGpt2WidthMax = std::int64_t{1} << 20;

// Transformers takes the usual names for these as well.
std::int64_t either(JsonFields& fields, const char* key, const char* usual, std::int64_t otherwise,
                    std::int64_t most) {
  return fields.integer(fields.has(key) ? key : usual, otherwise, 1, most);
}

void read_gpt2(JsonFields& fields, const std::string& where, ModelConfig& config) {
  config.hidden_size = either(fields, "n_embd", "hidden_size", 768, kGpt2WidthMax);
  config.layers = either(fields, "n_layer", "num_hidden_layers", 12, 10'000);
  config.heads = config.kv_heads = either(fields, "n_head", "num_attention_heads", 12, 1 << 14);
  config.head_dim = config.hidden_size / config.heads;
  config.intermediate_size = fields.has("n_inner") ? fields.integer("n_inner", 1, 4 * kGpt2WidthMax)
                                                   : 4 * config.hidden_size;
  config.vocab_size = fields.integer("vocab_size", 50257, 1, std::int64_t{1} << 24);
  config.max_position_embeddings = config.learned_positions =
      either(fields, "n_positions", "max_position_embeddings", 1024, std::int64_t{1} << 26);
  config.rotary_dim = 0;
  config.norm = NormKind::kLayer;
  config.norm_eps = static_cast<float>(fields.number("layer_norm_epsilon", 1e-5, 0.0));
  config.tie_word_embeddings = fields.boolean("tie_word_embeddings", true);
  config.initializer_range = static_cast<float>(fields.number("initializer_range", 0.02, 0.0));
  config.attention_bias = config.mlp_bias = true;
  read_activation(fields, "activation_function", "gelu_new", config);
  fields.only("scale_attn_weights", true, "true is");
  fields.only("scale_attn_by_inverse_layer_idx", false, "false is");
  fields.only("reorder_and_upcast_attn", false, "false is");
  fields.only("add_cross_attention", false, "false is");
  if (config.head_dim * config.heads != config.hidden_size)
    fields.refuse("n_head", "a divisor of n_embd is");
}

void plan_gpt2(PlanBuilder& builder) {
  const ModelConfig& c = builder.config();
  const PlanBuilder::LinearOptions conv{.bias = true, .transposed = true};
  builder.embedding("transformer.wte");
  builder.plan.positions = builder.tensor(
      {.name = "transformer.wpe.weight", .shape = {c.learned_positions, c.hidden_size}});
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string at = "transformer.h." + std::to_string(layer) + ".";
    LayerPlan plan_gpt2;
    plan_gpt2.attention_norm = builder.norm(at + "ln_1", c.hidden_size);
    const LinearPlan qkv =
        builder.linear(at + "attn.c_attn", 3 * c.hidden_size, c.hidden_size, conv);
    plan_gpt2.attention.q = qkv.part(0, c.hidden_size);
    plan_gpt2.attention.k = qkv.part(c.hidden_size, c.hidden_size);
    plan_gpt2.attention.v = qkv.part(2 * c.hidden_size, c.hidden_size);
    plan_gpt2.attention.o = builder.linear(at + "attn.c_proj", c.hidden_size, c.hidden_size, conv);
    plan_gpt2.mlp_norm = builder.norm(at + "ln_2", c.hidden_size);
    plan_gpt2.mlp.up = builder.linear(at + "mlp.c_fc", c.intermediate_size, c.hidden_size, conv);
    plan_gpt2.mlp.down =
        builder.linear(at + "mlp.c_proj", c.hidden_size, c.intermediate_size, conv);
    builder.plan.layers.push_back(std::move(plan_gpt2));
  }
  builder.plan.last_norm = builder.norm("transformer.ln_f", c.hidden_size);
  builder.lm_head("lm_head");
}

/// The causal mask was once saved with every layer.
bool ignorable_gpt2(const ModelConfig& config, std::string_view tensor) {
  return ignorable_usual(config, tensor) || tensor.ends_with(".attn.bias") ||
         tensor.ends_with(".attn.masked_bias");
}

}  // namespace

const Family kGpt2Family{.model_type = "gpt2",
                         .architecture = "GPT2LMHeadModel",
                         .read = read_gpt2,
                         .plan = plan_gpt2,
                         .ignorable = ignorable_gpt2,
                         .token_classifier = "classifier"};

}  // namespace rl
