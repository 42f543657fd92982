// ModelPlan: the parameters of a model and the part that each plays. A family makes it, and the one
// definition of a pass (graph.h) reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rl/model/model_config.h"

namespace rl {

/// How the rows of a weight must be re-ordered on the way from GGUF.
enum class GgufRows {
  kSame,
  kUnpermuteQueries,  // llama.cpp interleaves the two halves of each head's rows; undo it, `heads`
                      // heads
  kUnpermuteKeys,     // the same with `kv_heads` heads
};

/// One parameter of a family, before it has a place in an arena.
struct FamilyParameter {
  enum class Init { kNormal, kOnes, kZeros };

  std::string name;                 // Hugging Face's
  std::vector<std::int64_t> shape;  // as the arena has it
  bool transposed = false;          // Hugging Face stores it the other way round (GPT-2's Conv1D)
  bool frozen = false;              // a buffer: it has no gradient
  bool saved_fp32 = false;          // whatever the dtype that the others are saved in
  bool of_head = false;             // the backbone's checkpoint may lack it
  Init init = Init::kNormal;
  std::string gguf_name = {};  // empty: GGUF files of this family are not supported, or lack it
  GgufRows gguf_rows = GgufRows::kSame;
};

/// Parameters by their place in ModelPlan::parameters.
using ParameterIndex = std::int64_t;
inline constexpr ParameterIndex kNoParameter = -1;

/// Rows [first, first + rows) of a weight [out, in], and of its bias.
struct LinearPlan {
  ParameterIndex weight = kNoParameter;
  ParameterIndex bias = kNoParameter;
  std::int64_t first = 0;
  std::int64_t rows = 0;

  explicit operator bool() const { return weight != kNoParameter; }
  LinearPlan part(std::int64_t from, std::int64_t count) const {
    return {weight, bias, first + from, count};
  }
};

struct NormPlan {
  ParameterIndex weight = kNoParameter;
  ParameterIndex bias = kNoParameter;

  explicit operator bool() const { return weight != kNoParameter; }
};

struct AttentionPlan {
  LinearPlan q, k, v, o;
  NormPlan q_norm, k_norm;  // of each head
  // With LatentConfig, instead of k and v; and of q where it has a rank.
  LinearPlan q_down, kv_down, kv_up;
  NormPlan q_down_norm, kv_down_norm;
};

/// down(act(gate) * up), or down(act(up)) where there is no gate.
struct MlpPlan {
  LinearPlan gate, up, down;
};

struct ExpertsPlan {
  LinearPlan router;
  ParameterIndex correction = kNoParameter;
  std::vector<MlpPlan> experts;
  std::optional<MlpPlan> shared;
};

struct LayerPlan {
  NormPlan attention_norm,
      attention_norm_after;  // before and after; NormPlace says which there are
  AttentionPlan attention;
  NormPlan mlp_norm, mlp_norm_after;
  MlpPlan mlp;
  std::optional<ExpertsPlan> experts;  // instead of mlp
};

/// One of ModelConfig::output_heads: its parameters are `count` in a row.
struct HeadPlan {
  ParameterIndex first = kNoParameter;
  std::int64_t count = 0;
};

struct ModelPlan {
  std::vector<FamilyParameter> parameters;  // in the order of the arena
  ParameterIndex embedding = kNoParameter;
  ParameterIndex positions = kNoParameter;
  LinearPlan project_in, project_out;  // between the embedding's width and hidden_size
  std::vector<LayerPlan> layers;
  NormPlan last_norm;
  LinearPlan lm_head;  // none in a classifier
  std::vector<HeadPlan> heads;
  std::vector<std::string> unused;  // tensors of the family that this model does without: the
                                    // output layer of a classifier's base
};

/// Writes a plan down as a family goes through its parameters.
class PlanBuilder {
 public:
  struct LinearOptions {
    bool bias = false;
    bool transposed = false;
    bool saved_fp32 = false;
    std::string gguf = {};  // without ".weight"
    GgufRows gguf_rows = GgufRows::kSame;
  };

  explicit PlanBuilder(const ModelConfig& config) : config_(config) {}

  /// A weight [out, in] called NAME.weight, and NAME.bias.
  LinearPlan linear(const std::string& name, std::int64_t out, std::int64_t in,
                    const LinearOptions& options);
  LinearPlan linear(const std::string& name, std::int64_t out, std::int64_t in) {
    return linear(name, out, in, LinearOptions());
  }
  /// NAME.weight, and NAME.bias where the model's norms have one.
  NormPlan norm(const std::string& name, std::int64_t size, const std::string& gguf = {});
  /// An RMS norm's weight, whatever the model's norms are.
  NormPlan rms_norm(const std::string& name, std::int64_t size, const std::string& gguf = {});
  ParameterIndex tensor(FamilyParameter parameter);

  /// Tables that most families have: embedding, and output layer unless it is tied or the model is
  /// a classifier.
  void embedding(const std::string& name, const std::string& gguf = {});
  void lm_head(const std::string& name, const std::string& gguf = {});

  const ModelConfig& config() const { return config_; }
  ModelPlan plan;

 private:
  const ModelConfig& config_;
};

}  // namespace rl
