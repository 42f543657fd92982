// Family: one model family's reader of config.json and its plan of parameters by part. A new family
// is one file that defines a Family, and its line in family.cpp (docs/guide/new-family.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rl/model/model_config.h"
#include "rl/model/model_plan.h"
#include "runtime/core/result.h"

namespace rl {

class JsonFields;

struct Family {
  std::string_view model_type;    // config.json's "model_type"
  std::string_view architecture;  // config.json's "architectures"
  std::string_view gguf_architecture =
      {};  // "general.architecture"; empty: GGUF files of it are not read

  /// Reads a whole config.json; refuses through `fields` what we can't compute. `where` begins
  /// messages about nested objects.
  void (*read)(JsonFields& fields, const std::string& where, ModelConfig& config);

  /// All parameters in the order of the arena, and their parts.
  void (*plan)(PlanBuilder& builder);

  /// Tensors that checkpoints of this family carry without need, such as buffers of old versions or
  /// a copy of tied weights.
  bool (*ignorable)(const ModelConfig& config, std::string_view tensor);

  std::string_view token_classifier = "score";  // what ...ForTokenClassification calls its head
};

/// The family of that `model_type`, or nullptr.
const Family* find_family(std::string_view model_type);
const Family* find_gguf_family(std::string_view architecture);

/// The family of a config that was read, so that must exist.
const Family& family_of(const ModelConfig& config);

/// The family's plan, and the heads'.
ModelPlan plan_of(const ModelConfig& config);

/// config.json's "architectures" of a model of that family for that task:
/// LlamaForTokenClassification.
std::string architecture_of(const Family& family, ModelTask task);

/// "llama, ...": for error messages.
std::string supported_families();

// -- What families share.

/// How the names of Hugging Face's classes end.
inline constexpr std::string_view kTokenClassification = "ForTokenClassification";
inline constexpr std::string_view kSequenceClassification = "ForSequenceClassification";

/// What a key that is missing means, which is not the same in every family. A null means the first
/// of what stands next to it.
struct ConfigDefaults {
  std::int64_t kv_heads = 0;  // 0: as many as heads
  std::int64_t head_dim = 0;  // 0: hidden_size / heads
  std::int64_t positions = 2048;
  double norm_eps = 1e-6;
  double rope_theta = 10000.0;
  std::int64_t original_positions =
      0;  // original_max_position_embeddings next to the rope object; 0: what the object says
  bool tied = false;
  bool partial_rotary = false;  // whether partial_rotary_factor has a meaning
  bool softcaps = false;        // whether attn_ and final_logit_softcapping have one
};
/// The keys that most families have in common, under their usual names: sizes, norm, rope, ids.
void read_common(JsonFields& fields, const std::string& where, ModelConfig& config,
                 const ConfigDefaults& defaults = {});
/// `key` names an activation; kSilu etc. by Hugging Face's names.
void read_activation(JsonFields& fields, std::string_view key, std::string_view otherwise,
                     ModelConfig& config);
/// Which layers see a window of `sliding_window` tokens.
enum class WindowRule {
  kAllLayers,   // all, whatever else the file says
  kIfUsed,      // all, where `use_sliding_window` is true
  kByLayer,     // those that `layer_types` names, or from `max_window_layers` on, where
                // `use_sliding_window` is true
  kEveryOther,  // those that `layer_types` names, or every other one, the first included
};
/// `otherwise`: the window where the key is missing; 0: none.
void read_windows(JsonFields& fields, ModelConfig& config, WindowRule rule, std::int64_t otherwise);

/// What the layers of Llama's descendants have in different ways.
struct LlamaLayerOptions {
  bool qkv_bias = false;
  bool out_bias = false;
  bool mlp_bias = false;
  bool fused_qkv = false;      // one qkv_proj, rows q, k, v
  bool fused_gate_up = false;  // one gate_up_proj, rows gate, up
};
/// model.embed_tokens ... lm_head.weight, in Hugging Face's order.
void plan_llama(PlanBuilder& builder, const LlamaLayerOptions& options = {});
/// PREFIX.gate_proj, .up_proj and .down_proj.
MlpPlan plan_gated_mlp(PlanBuilder& builder, const std::string& prefix, std::int64_t intermediate,
                       bool bias = false, const std::string& gguf = {});
/// PREFIX.gate (the router), PREFIX.experts.N and PREFIX.shared_experts.
ExpertsPlan plan_experts(PlanBuilder& builder, const std::string& prefix);

/// What files call the output layer, which a tied model's may hold next to the embedding or in
/// place of it.
std::span<const std::string_view> output_layer_names();

/// Buffers of old versions of transformers, and the copy of a tied output layer.
bool ignorable_usual(const ModelConfig& config, std::string_view tensor);

}  // namespace rl
