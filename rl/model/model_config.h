// ModelConfig: the architecture of a checkpoint, the same struct for every file format. Invariant:
// Transformer computes a ModelConfig that load() returned exactly; load() refuses architectures
// that are not supported.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rl/kernel/elementwise.h"
#include "rl/model/head_config.h"
#include "rl/model/rope_config.h"
#include "runtime/core/result.h"

namespace rl {

/// The config.json that a config was read from, and the generation_config.json next to it. A saved
/// model keeps their fields, those that Starling does not use included.
struct OriginalConfig {
  std::shared_ptr<const nlohmann::json> json;  // null: there was none
  std::shared_ptr<const nlohmann::json> generation;
  bool operator==(const OriginalConfig&) const { return true; }
};

/// The normalization of a block's inputs.
enum class NormKind {
  kRms,         // x / rms(x) * weight
  kRmsPlusOne,  // x / rms(x) * (1 + weight): Gemma's
  kLayer,       // (x - mean(x)) / std(x) * weight + bias
};

/// The position of the norms in a block.
enum class NormPlace {
  kBefore,  // x + f(norm(x))
  kAfter,   // norm(x + f(x)): the first transformers, and OPT-350m
  kBoth,    // x + norm(f(norm(x))): Gemma 2, GLM-4
};

/// A mixture of experts, a few for each token; Shazeer et al. 2017, arXiv:1701.06538.
struct MoeConfig {
  enum class Score { kSoftmax, kSigmoid };

  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t intermediate_size = 0;  // of each expert
  // Of the shared expert, which every token uses in addition; 0: none.
  std::int64_t shared_intermediate_size = 0;
  Score score = Score::kSoftmax;
  bool corrected = false;   // a learned bias affects which experts are chosen, not their weights
                            // (DeepSeek-V3, arXiv:2412.19437)
  bool normalized = false;  // the weights of the chosen experts are scaled to sum to 1
  double scaling = 1.0;     // of the weights
  // Experts are divided into groups; only those of the best `groups_per_token` are candidates.
  std::int64_t groups = 1;
  std::int64_t groups_per_token = 1;
  bool operator==(const MoeConfig&) const = default;
};

/// Latent attention: keys and values are made from a small latent vector, and positions have their
/// own dimensions; DeepSeek-V2, arXiv:2405.04434.
struct LatentConfig {
  std::int64_t query_rank = 0;  // 0: queries are projected directly
  std::int64_t kv_rank = 0;
  // Dimensions of a head without positions; ModelConfig::head_dim includes the rotary ones.
  std::int64_t nope_dim = 0;
  std::int64_t value_dim = 0;               // of a head
  static constexpr float kNormEps = 1e-6F;  // of the latents' norms, whatever rms_norm_eps is
  bool operator==(const LatentConfig&) const = default;
};

/// The architecture of one decoder-only language model. A value. Sizes are in elements, positions
/// in tokens. Size: a field a property that some family has in its config.json.
struct ModelConfig {
  std::string family;  // Hugging Face's `model_type`, for instance "llama"
  std::int64_t hidden_size = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // divides heads
  std::int64_t head_dim = 0;  // of queries and keys
  std::int64_t intermediate_size = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 0;

  // Of an embedding table that is projected to hidden_size; 0: hidden_size, not projected.
  std::int64_t embedding_size = 0;
  double embedding_scale = 1.0;
  std::int64_t learned_positions = 0;  // rows of a table of position embeddings; 0: none
  std::int64_t position_offset = 0;    // the first position's row in it
  std::int64_t rotary_dim = -1;        // rotated dimensions of a head; -1: all, 0: none
  bool rope_interleaved = false;       // pairs are (2i, 2i + 1) rather than (i, i + rotary_dim / 2)
  RopeConfig rope;

  NormKind norm = NormKind::kRms;
  NormPlace norm_place = NormPlace::kBefore;
  float norm_eps = 1e-6F;
  bool last_norm = true;
  // Biases of queries, keys and values; the family defines which other projections have them.
  bool attention_bias = false;
  bool mlp_bias = false;
  bool query_key_norm = false;     // RMS norm of each query and key head, before the rotation
  double attention_scale = 0.0;    // of the scores; 0: 1 / sqrt(head_dim)
  double attention_softcap = 0.0;  // 0: none
  double logit_softcap = 0.0;
  std::vector<std::int64_t> windows;  // of each layer: how many tokens a token attends to,
                                      // itself included; 0: all. Empty: all, in all layers
  std::optional<LatentConfig> latent;
  kernel::Activation activation = kernel::Activation::kSilu;
  std::optional<MoeConfig> moe;
  // With `moe`: which layers have an ordinary MLP instead of experts; empty: none.
  std::vector<bool> dense_layers;

  bool tie_word_embeddings = false;  // the output layer is the embedding table
  ModelTask task = ModelTask::kCausalLm;
  std::vector<HeadConfig> output_heads;  // see head.h
  float initializer_range = 0.02F;       // standard deviation of a random initialisation
  std::optional<std::int32_t> bos_id;
  // Generation ends at any of these; from generation_config.json if it has some.
  std::vector<std::int32_t> eos_ids;
  std::optional<std::int32_t> pad_id;
  OriginalConfig original;

  /// Reads `config.json` (and `generation_config.json` if there) of a Hugging Face folder, such a
  /// file itself, or the metadata of a .gguf file. kNotFound: no such file. kInvalidArgument: not
  /// JSON, a key missing, of the wrong type or out of range. kUnimplemented: a family or an option
  /// that is not supported, by name.
  static runtime::Result<ModelConfig> load(const std::filesystem::path& model);

  /// From a parsed config.json. `where` begins every error message. Errors as load().
  static runtime::Result<ModelConfig> from_json(const nlohmann::json& json, std::string_view where);

  /// As a Hugging Face config.json for transformers 4 and 5: the original one, with fp32 as its
  /// dtype and the ids above. Heads in addition to an output layer are not written, as in TRL:
  /// request them again when the model is loaded. A config that was built field by field must be of
  /// the llama family. from_json(to_json()) gives an equal config.
  nlohmann::json to_json() const;

  /// heads * head_dim and kv_heads * head_dim: the widths of the query and of the key and value
  /// projections.
  std::int64_t query_size() const { return heads * head_dim; }
  std::int64_t kv_size() const { return kv_heads * head_dim; }
  std::int64_t rotated() const { return rotary_dim < 0 ? head_dim : rotary_dim; }
  std::int64_t window(std::int64_t layer) const {
    return windows.empty() ? 0 : windows[static_cast<std::size_t>(layer)];
  }
  bool has_experts(std::int64_t layer) const {
    return moe && (dense_layers.empty() || !dense_layers[static_cast<std::size_t>(layer)]);
  }
  std::int64_t embedding_width() const {
    return embedding_size == 0 ? hidden_size : embedding_size;
  }

  bool operator==(const ModelConfig&) const = default;
};

}  // namespace rl
