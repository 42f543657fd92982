// What one model family adds: how its config reads, which parameters it has, and how other formats name them.
// A new family is one file that defines a Family, and its line in family.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "rl/model/model_config.h"
#include "runtime/core/result.h"

namespace rl {

class JsonFields;

/// How the rows of a weight must be re-ordered on the way from GGUF.
enum class GgufRows {
  kSame,
  kUnpermuteQueries,  // llama.cpp interleaves the two halves of each head's rows; undo it, `heads` heads
  kUnpermuteKeys,     // the same with `kv_heads` heads
};

/// One parameter of a family, before it has a place in an arena.
struct FamilyParameter {
  std::string name;                 // Hugging Face's
  std::vector<std::int64_t> shape;  // as Hugging Face stores it
  std::string gguf_name;
  GgufRows gguf_rows = GgufRows::kSame;
  bool is_norm = false;  // starts at one instead of at random
};

struct Family {
  std::string_view model_type;         // config.json's "model_type"
  std::string_view architecture;       // config.json's "architectures"
  std::string_view gguf_architecture;  // "general.architecture"

  /// Adds to `config`, whose common fields are read, what is particular; refuses through `fields` what we can't compute.
  void (*read)(JsonFields& fields, ModelConfig& config);

  /// Adds the family's particular keys to a config.json whose common keys are written.
  void (*write)(const ModelConfig& config, nlohmann::json& json);

  /// All parameters in the order of the arena.
  std::vector<FamilyParameter> (*parameters)(const ModelConfig& config);

  /// Tensors that checkpoints of this family carry without need, such as buffers of old versions or a copy of tied weights.
  bool (*ignorable)(const ModelConfig& config, std::string_view tensor);
};

extern const Family kLlamaFamily;

/// The family of that `model_type`, or nullptr.
const Family* find_family(std::string_view model_type);
const Family* find_gguf_family(std::string_view architecture);

/// The family of a config that was read, so that must exist.
const Family& family_of(const ModelConfig& config);

/// "llama, ...": for error messages.
std::string supported_families();

}  // namespace rl
