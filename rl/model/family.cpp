#include "rl/model/family.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rl/model/family_list.h"
#include "rl/model/head.h"
#include "rl/model/json_fields.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr std::array kFamilies = {
    &kLlamaFamily,    &kMistralFamily,    &kMixtralFamily, &kQwen2Family, &kQwen3Family,
    &kQwen3MoeFamily, &kPhi3Family,       &kGemma2Family,  &kGlmFamily,   &kGlm4Family,
    &kChatGlmFamily,  &kDeepseekV3Family, &kKimiK2Family,  &kGpt2Family,  &kOptFamily};

// Limits on what a file may claim: far above any model, low enough that no product of sizes
// overflows.
constexpr std::int64_t kLayersMax = 10'000;
constexpr std::int64_t kWidthMax = std::int64_t{1} << 20;
constexpr std::int64_t kHeadsMax = std::int64_t{1} << 14;
constexpr std::int64_t kVocabMax = std::int64_t{1} << 24;
constexpr std::int64_t kPositionsMax = std::int64_t{1} << 26;

}  // namespace

const Family* find_family(std::string_view model_type) {
  for (const Family* family : kFamilies) {
    if (family->model_type == model_type) return family;
  }
  return nullptr;
}

const Family* find_gguf_family(std::string_view architecture) {
  for (const Family* family : kFamilies) {
    if (!family->gguf_architecture.empty() && family->gguf_architecture == architecture)
      return family;
  }
  return nullptr;
}

const Family& family_of(const ModelConfig& config) {
  const Family* family = find_family(config.family);
  CHECK(family != nullptr);
  return *family;
}

ModelPlan plan_of(const ModelConfig& config) {
  PlanBuilder builder(config);
  family_of(config).plan(builder);
  for (const HeadConfig& head : config.output_heads) {
    const HeadKind* kind = find_head_kind(head.kind);
    CHECK(kind != nullptr);
    HeadPlan plan{.first = static_cast<ParameterIndex>(builder.plan.parameters.size())};
    for (FamilyParameter& parameter : kind->parameters(config, head)) {
      parameter.of_head = true;
      builder.tensor(std::move(parameter));
      ++plan.count;
    }
    builder.plan.heads.push_back(plan);
  }
  return std::move(builder.plan);
}

std::string architecture_of(const Family& family, ModelTask task) {
  if (task == ModelTask::kCausalLm) return std::string(family.architecture);
  std::string_view stem = family.architecture;
  for (const std::string_view ending : {"ForCausalLM", "LMHeadModel", "ForConditionalGeneration"}) {
    if (stem.ends_with(ending)) stem.remove_suffix(ending.size());
  }
  return std::string(stem) + std::string(task == ModelTask::kTokenClassification
                                             ? kTokenClassification
                                             : kSequenceClassification);
}

std::string supported_families() {
  std::string names;
  for (const Family* family : kFamilies)
    names += (names.empty() ? "" : ", ") + std::string(family->model_type);
  return names;
}

// Fields that some families compute with and none of ours does. A config that sets one means it.
void refuse_others_scales(JsonFields& fields, bool softcaps) {
  for (const char* key : {"attention_multiplier", "embedding_multiplier", "logit_scale",
                          "logits_scaling", "residual_multiplier", "scale_depth", "scale_emb"})
    fields.only(key, 1.0, "1 is");
  if (fields.has("clip_qkv")) fields.refuse("clip_qkv", "none is");
  if (softcaps) return;
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
    fields.only(key, 0.0, "0 is, but in gemma2");
}

void read_common(JsonFields& fields, const std::string& where, ModelConfig& config,
                 const ConfigDefaults& defaults) {
  config.hidden_size = fields.integer("hidden_size", 1, kWidthMax);
  config.layers = fields.integer("num_hidden_layers", 1, kLayersMax);
  config.heads = fields.integer("num_attention_heads", 1, kHeadsMax);
  if (!fields.status().ok()) return;
  const bool own_kv_heads = defaults.kv_heads > 0 && !fields.is_null("num_key_value_heads");
  const bool own_head_dim = defaults.head_dim > 0 && !fields.is_null("head_dim");
  config.kv_heads = fields.integer("num_key_value_heads",
                                   own_kv_heads ? defaults.kv_heads : config.heads, 1, kHeadsMax);
  config.head_dim = fields.integer(
      "head_dim", own_head_dim ? defaults.head_dim : config.hidden_size / config.heads, 1,
      kWidthMax);
  config.intermediate_size = fields.integer("intermediate_size", 1, kWidthMax);
  config.vocab_size = fields.integer("vocab_size", 1, kVocabMax);
  config.max_position_embeddings =
      fields.integer("max_position_embeddings", defaults.positions, 1, kPositionsMax);
  config.norm_eps = static_cast<float>(fields.number("rms_norm_eps", defaults.norm_eps, 0.0));
  config.tie_word_embeddings = fields.boolean("tie_word_embeddings", defaults.tied);
  config.initializer_range = static_cast<float>(fields.number("initializer_range", 0.02, 0.0));
  fields.number("attention_dropout", 0.0,
                0.0);  // a trainer's choice: no pass of ours leaves anything of the base model out
  refuse_others_scales(fields, defaults.softcaps);
  const std::string nested = rope_object(fields);
  JsonFields scaling(fields.object(nested), where + ": " + nested);
  if (!defaults.partial_rotary) {
    fields.only("partial_rotary_factor", 1.0, "1 is");
    scaling.only("partial_rotary_factor", 1.0, "1 is");
  } else if (config.rotary_dim < 0) {
    const double share = scaling.number("partial_rotary_factor",
                                        fields.number("partial_rotary_factor", 1.0, 0.0), 0.0);
    if (share > 1.0) fields.refuse("partial_rotary_factor", "a share up to 1 is");
    if (share < 1.0)
      config.rotary_dim = static_cast<std::int64_t>(static_cast<double>(config.head_dim) * share);
  }
  fields.merge(scaling);
  config.rope =
      read_rope(fields, where, config.max_position_embeddings, config.rotated(),
                {.theta = defaults.rope_theta, .original_positions = defaults.original_positions});
  if (config.rope.kind == RopeConfig::Kind::kDynamic) {
    // Its config has the context that it was trained with.
    const double stretched =
        static_cast<double>(config.rope.original_max_position_embeddings) * config.rope.factor;
    config.max_position_embeddings =
        std::max<std::int64_t>(config.max_position_embeddings, std::llround(stretched));
  }
}

void read_activation(JsonFields& fields, std::string_view key, std::string_view otherwise,
                     ModelConfig& config) {
  const std::string name = fields.text(key, otherwise);
  if (name == "silu" || name == "swish")
    config.activation = kernel::Activation::kSilu;
  else if (name == "gelu")
    config.activation = kernel::Activation::kGelu;
  else if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast")
    config.activation = kernel::Activation::kGeluTanh;
  else if (name == "relu")
    config.activation = kernel::Activation::kRelu;
  else
    fields.refuse(key, "silu, gelu, gelu_new, gelu_pytorch_tanh and relu are");
}

void read_windows(JsonFields& fields, ModelConfig& config, WindowRule rule,
                  std::int64_t otherwise) {
  const bool by_layer = rule == WindowRule::kByLayer || rule == WindowRule::kEveryOther;
  const std::vector<std::string> types =
      by_layer ? fields.texts("layer_types") : std::vector<std::string>();
  if (!types.empty() && static_cast<std::int64_t>(types.size()) != config.layers)
    return fields.refuse("layer_types", "one for each layer is");
  for (const std::string& type : types) {
    if (type != "full_attention" && type != "sliding_attention")
      return fields.refuse("layer_types", "full_attention and sliding_attention are");
  }
  const bool used = rule == WindowRule::kAllLayers || rule == WindowRule::kEveryOther ||
                    fields.boolean("use_sliding_window", false);
  const std::int64_t window = !used || fields.is_null("sliding_window")
                                  ? 0
                                  : fields.integer("sliding_window", otherwise, 1, kPositionsMax);
  if (window == 0) {
    if (std::find(types.begin(), types.end(), "sliding_attention") != types.end())
      fields.refuse("layer_types", "sliding_attention with a sliding_window that is used is");
    return;
  }
  // Older configs of Qwen say so instead: the first layers see everything.
  const std::int64_t full =
      rule == WindowRule::kByLayer ? fields.integer("max_window_layers", 28, 0, kLayersMax) : 0;
  for (std::int64_t layer = 0; layer < config.layers && fields.status().ok(); ++layer) {
    bool sees_window = layer >= full && (rule != WindowRule::kEveryOther || layer % 2 == 0);
    if (!types.empty()) sees_window = types[static_cast<std::size_t>(layer)] == "sliding_attention";
    config.windows.push_back(sees_window ? window : 0);
  }
}

std::span<const std::string_view> output_layer_names() {
  static constexpr std::array<std::string_view, 3> kNames = {"lm_head.weight", "output.weight",
                                                             "transformer.output_layer.weight"};
  return kNames;
}

bool ignorable_usual(const ModelConfig& config, std::string_view tensor) {
  if (tensor.ends_with("rotary_emb.inv_freq"))
    return true;  // a buffer that old versions of transformers saved
  if (tensor == "rope_freqs.weight")
    return true;  // GGUF's form of the llama3 scaling, read with the metadata
  if (tensor.starts_with("v_head.summary."))
    return true;  // value_head(), which PPO put next to the output layer: there for who asks for it
  return config.tie_word_embeddings && std::ranges::count(output_layer_names(), tensor) > 0;
}

MlpPlan plan_gated_mlp(PlanBuilder& builder, const std::string& prefix, std::int64_t intermediate,
                       bool bias, const std::string& gguf) {
  const std::int64_t hidden = builder.config().hidden_size;
  const auto named = [&](const char* part) { return gguf.empty() ? std::string() : gguf + part; };
  MlpPlan mlp;
  mlp.gate = builder.linear(prefix + ".gate_proj", intermediate, hidden,
                            {.bias = bias, .gguf = named("ffn_gate")});
  mlp.up = builder.linear(prefix + ".up_proj", intermediate, hidden,
                          {.bias = bias, .gguf = named("ffn_up")});
  mlp.down = builder.linear(prefix + ".down_proj", hidden, intermediate,
                            {.bias = bias, .gguf = named("ffn_down")});
  return mlp;
}

ExpertsPlan plan_experts(PlanBuilder& builder, const std::string& prefix) {
  const MoeConfig& moe = *builder.config().moe;
  ExpertsPlan plan;
  // As transformers keeps DeepSeek-V3's: rounded, the router and its correction would choose other
  // experts.
  plan.router = builder.linear(prefix + ".gate", moe.experts, builder.config().hidden_size,
                               {.saved_fp32 = moe.corrected});
  if (moe.corrected) {
    plan.correction = builder.tensor({.name = prefix + ".gate.e_score_correction_bias",
                                      .shape = {moe.experts},
                                      .frozen = true,
                                      .saved_fp32 = true,
                                      .init = FamilyParameter::Init::kZeros});
  }
  for (std::int64_t expert = 0; expert < moe.experts; ++expert) {
    plan.experts.push_back(plan_gated_mlp(builder, prefix + ".experts." + std::to_string(expert),
                                          moe.intermediate_size));
  }
  if (moe.shared_intermediate_size > 0)
    plan.shared = plan_gated_mlp(builder, prefix + ".shared_experts", moe.shared_intermediate_size);
  return plan;
}

void plan_llama(PlanBuilder& builder, const LlamaLayerOptions& options) {
  const ModelConfig& c = builder.config();
  // Only llama.cpp's conversion of Llama and Mistral interleaves heads.
  const bool permuted = c.family == "llama" || c.family == "mistral";
  builder.embedding("model.embed_tokens", "token_embd");
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    const std::string gguf = "blk." + std::to_string(layer) + ".";
    LayerPlan plan;
    plan.attention_norm = builder.norm(at + "input_layernorm", c.hidden_size, gguf + "attn_norm");
    AttentionPlan& attention = plan.attention;
    if (options.fused_qkv) {
      const LinearPlan qkv =
          builder.linear(at + "self_attn.qkv_proj", c.query_size() + 2 * c.kv_size(), c.hidden_size,
                         {.bias = options.qkv_bias});
      attention.q = qkv.part(0, c.query_size());
      attention.k = qkv.part(c.query_size(), c.kv_size());
      attention.v = qkv.part(c.query_size() + c.kv_size(), c.kv_size());
    } else {
      const auto rows = [&](GgufRows order) { return permuted ? order : GgufRows::kSame; };
      attention.q = builder.linear(at + "self_attn.q_proj", c.query_size(), c.hidden_size,
                                   {.bias = options.qkv_bias,
                                    .gguf = gguf + "attn_q",
                                    .gguf_rows = rows(GgufRows::kUnpermuteQueries)});
      attention.k = builder.linear(at + "self_attn.k_proj", c.kv_size(), c.hidden_size,
                                   {.bias = options.qkv_bias,
                                    .gguf = gguf + "attn_k",
                                    .gguf_rows = rows(GgufRows::kUnpermuteKeys)});
      attention.v = builder.linear(at + "self_attn.v_proj", c.kv_size(), c.hidden_size,
                                   {.bias = options.qkv_bias, .gguf = gguf + "attn_v"});
    }
    if (c.query_key_norm) {
      attention.q_norm =
          builder.rms_norm(at + "self_attn.q_norm", c.head_dim, gguf + "attn_q_norm");
      attention.k_norm =
          builder.rms_norm(at + "self_attn.k_norm", c.head_dim, gguf + "attn_k_norm");
    }
    attention.o = builder.linear(at + "self_attn.o_proj", c.hidden_size, c.query_size(),
                                 {.bias = options.out_bias, .gguf = gguf + "attn_output"});
    plan.mlp_norm = builder.norm(at + "post_attention_layernorm", c.hidden_size, gguf + "ffn_norm");
    if (c.has_experts(layer)) {
      plan.experts = plan_experts(builder, at + "mlp");
    } else if (options.fused_gate_up) {
      const LinearPlan gate_up =
          builder.linear(at + "mlp.gate_up_proj", 2 * c.intermediate_size, c.hidden_size);
      plan.mlp.gate = gate_up.part(0, c.intermediate_size);
      plan.mlp.up = gate_up.part(c.intermediate_size, c.intermediate_size);
      plan.mlp.down = builder.linear(at + "mlp.down_proj", c.hidden_size, c.intermediate_size);
    } else {
      plan.mlp = plan_gated_mlp(builder, at + "mlp", c.intermediate_size, options.mlp_bias, gguf);
    }
    builder.plan.layers.push_back(std::move(plan));
  }
  builder.plan.last_norm = builder.norm("model.norm", c.hidden_size, "output_norm");
  builder.lm_head("lm_head", "output");
}

}  // namespace rl
