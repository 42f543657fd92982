// OPT: learned positions that begin at row 2, ReLU, layer norms before the blocks; Zhang et al.
// 2022, arXiv:2205.01068. OPT-350m has layer norms after the blocks, and an embedding narrower than
// the layers.
#include <nlohmann/json.hpp>

#include "rl/model/family_list.h"
#include "rl/model/json_fields.h"

namespace rl {
namespace {

constexpr std::int64_t kOptWidthMax = std::int64_t{1} << 20;

void read_opt(JsonFields& fields, const std::string& where, ModelConfig& config) {
  config.hidden_size = fields.integer("hidden_size", 768, 1, kOptWidthMax);
  config.layers = fields.integer("num_hidden_layers", 12, 1, 10'000);
  config.heads = config.kv_heads = fields.integer("num_attention_heads", 12, 1, 1 << 14);
  config.head_dim = config.hidden_size / config.heads;
  config.intermediate_size = fields.integer("ffn_dim", 3072, 1, kOptWidthMax);
  config.vocab_size = fields.integer("vocab_size", 50272, 1, std::int64_t{1} << 24);
  config.max_position_embeddings =
      fields.integer("max_position_embeddings", 2048, 1, std::int64_t{1} << 26);
  config.position_offset = 2;
  config.learned_positions = config.max_position_embeddings + config.position_offset;
  config.rotary_dim = 0;
  const std::int64_t embedding =
      fields.integer("word_embed_proj_dim", config.hidden_size, 1, kOptWidthMax);
  config.embedding_size = embedding == config.hidden_size ? 0 : embedding;
  config.norm = NormKind::kLayer;
  config.norm_eps = 1e-5F;
  config.norm_place =
      fields.boolean("do_layer_norm_before", true) ? NormPlace::kBefore : NormPlace::kAfter;
  config.last_norm =
      config.norm_place == NormPlace::kBefore && !fields.boolean("_remove_final_layer_norm", false);
  config.tie_word_embeddings = fields.boolean("tie_word_embeddings", true);
  config.initializer_range = static_cast<float>(fields.number("init_std", 0.02, 0.0));
  config.attention_bias = config.mlp_bias = fields.boolean("enable_bias", true);
  read_activation(fields, "activation_function", "relu", config);
  fields.only("layer_norm_elementwise_affine", true, "true is");
  if (config.head_dim * config.heads != config.hidden_size)
    fields.refuse("num_attention_heads", "a divisor of hidden_size is");
}

void plan_opt(PlanBuilder& builder) {
  const ModelConfig& c = builder.config();
  const PlanBuilder::LinearOptions linear{.bias = c.attention_bias};
  const std::string model = "model.decoder.";
  builder.embedding(model + "embed_tokens");
  builder.plan.positions = builder.tensor(
      {.name = model + "embed_positions.weight", .shape = {c.learned_positions, c.hidden_size}});
  if (c.embedding_size > 0) {
    builder.plan.project_out =
        builder.linear(model + "project_out", c.embedding_size, c.hidden_size);
    builder.plan.project_in = builder.linear(model + "project_in", c.hidden_size, c.embedding_size);
  }
  if (c.last_norm) builder.plan.last_norm = builder.norm(model + "final_layer_norm", c.hidden_size);
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string at = model + "layers." + std::to_string(layer) + ".";
    LayerPlan plan_opt;
    plan_opt.attention.k =
        builder.linear(at + "self_attn.k_proj", c.hidden_size, c.hidden_size, linear);
    plan_opt.attention.v =
        builder.linear(at + "self_attn.v_proj", c.hidden_size, c.hidden_size, linear);
    plan_opt.attention.q =
        builder.linear(at + "self_attn.q_proj", c.hidden_size, c.hidden_size, linear);
    plan_opt.attention.o =
        builder.linear(at + "self_attn.out_proj", c.hidden_size, c.hidden_size, linear);
    const NormPlan attention_norm = builder.norm(at + "self_attn_layer_norm", c.hidden_size);
    plan_opt.mlp.up = builder.linear(at + "fc1", c.intermediate_size, c.hidden_size, linear);
    plan_opt.mlp.down = builder.linear(at + "fc2", c.hidden_size, c.intermediate_size, linear);
    const NormPlan mlp_norm = builder.norm(at + "final_layer_norm", c.hidden_size);
    (c.norm_place == NormPlace::kBefore ? plan_opt.attention_norm : plan_opt.attention_norm_after) =
        attention_norm;
    (c.norm_place == NormPlace::kBefore ? plan_opt.mlp_norm : plan_opt.mlp_norm_after) = mlp_norm;
    builder.plan.layers.push_back(std::move(plan_opt));
  }
  builder.lm_head("lm_head");
}

/// The first checkpoints name their tensors without "model." (as decoder.*); those are of another
/// layout and are told by name.
bool ignorable_opt(const ModelConfig& config, std::string_view tensor) {
  return ignorable_usual(config, tensor);
}

}  // namespace

const Family kOptFamily{.model_type = "opt",
                        .architecture = "OPTForCausalLM",
                        .read = read_opt,
                        .plan = plan_opt,
                        .ignorable = ignorable_opt};

}  // namespace rl
