// What a checkpoint says about its architecture, in one struct whatever the file it came from.
// Invariant: a ModelConfig that load() returned is one that Transformer computes exactly; what is not supported was refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

class GgufFile;

/// Rotary position embeddings; Su et al. 2021, arXiv:2104.09864. Every pair of dimensions turns by position * theta^(-2i/d),
/// possibly slowed down to stretch the context.
struct RopeConfig {
  enum class Kind {
    kDefault,
    kLinear,  // every frequency divided by `factor`
    kLlama3,  // low frequencies divided by `factor`, high ones kept, a smooth ramp between (Llama 3.1)
  };
  Kind kind = Kind::kDefault;
  double theta = 10000.0;
  double factor = 1.0;
  double low_freq_factor = 1.0;                       // kLlama3
  double high_freq_factor = 4.0;                      // kLlama3
  std::int64_t original_max_position_embeddings = 0;  // kLlama3: the context before stretching, in tokens

  bool operator==(const RopeConfig&) const = default;
};

/// The architecture of one decoder-only language model. A value. Sizes are in elements, positions in tokens.
struct ModelConfig {
  std::string family;  // Hugging Face's `model_type`, for instance "llama"
  std::int64_t hidden_size = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // divides heads
  std::int64_t head_dim = 0;  // even
  std::int64_t intermediate_size = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 0;
  float rms_norm_eps = 1e-6F;
  RopeConfig rope;
  bool tie_word_embeddings = false;  // the output layer is the embedding table
  float initializer_range = 0.02F;   // standard deviation of a random initialisation
  std::optional<std::int32_t> bos_id;
  std::vector<std::int32_t> eos_ids;  // generation ends at any of these; from generation_config.json where it names some
  std::optional<std::int32_t> pad_id;

  /// Reads `config.json` (and `generation_config.json` if there) of a Hugging Face folder, such a file itself, or the metadata of
  /// a .gguf file. kNotFound: no such file. kInvalidArgument: not JSON, a key missing, of the wrong type or out of range.
  /// kUnimplemented: a family or an option that is not supported, by name.
  static runtime::Result<ModelConfig> load(const std::filesystem::path& model);

  /// From a parsed config.json. `where` begins every error message. Errors as load().
  static runtime::Result<ModelConfig> from_json(const nlohmann::json& json, std::string_view where);

  /// From GGUF metadata (`general.architecture`, `llama.*`, `tokenizer.ggml.*`). Errors as load().
  static runtime::Result<ModelConfig> from_gguf(const GgufFile& file);

  /// As a Hugging Face config.json that transformers 4 and 5 read. from_json(to_json()) gives an equal config.
  nlohmann::json to_json() const;

  /// heads * head_dim and kv_heads * head_dim: the widths of the query and of the key and value projections.
  std::int64_t query_size() const { return heads * head_dim; }
  std::int64_t kv_size() const { return kv_heads * head_dim; }

  bool operator==(const ModelConfig&) const = default;
};

}  // namespace rl
