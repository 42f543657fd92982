#include "rl/rollout/decoder_weights.h"

#include <string>
#include <string_view>

#include "rl/model/model_config.h"
#include "rl/model/parameters.h"

namespace rl {
namespace {

// Looks parameters up by name and counts them, so that one left unused is noticed instead of changing the model in silence.
class Lookup {
 public:
  explicit Lookup(const Parameters& parameters) : parameters_(parameters) {}

  const float* required(const std::string& name) {
    const float* data = optional(name);
    if (data == nullptr && missing_.empty()) missing_ = name;
    return data;
  }

  const float* optional(const std::string& name) {
    if (parameters_.find(name) == nullptr) return nullptr;
    ++used_;
    return parameters_.data(name);
  }

  runtime::Status finish(std::string_view family) const {
    if (!missing_.empty()) return runtime::unimplemented("generating with family " + std::string(family) + ": the model has no " + missing_);
    if (used_ != parameters_.specs().size()) {
      return runtime::unimplemented("generating with family " + std::string(family) + ": the engine uses " + std::to_string(used_) + " of its " +
                                    std::to_string(parameters_.specs().size()) + " parameters");
    }
    return {};
  }

 private:
  const Parameters& parameters_;
  std::size_t used_ = 0;
  std::string missing_;
};

DecoderLayerWeights layer_weights(Lookup& find, std::int64_t layer) {
  const std::string at = "model.layers." + std::to_string(layer) + ".";
  DecoderLayerWeights w;
  w.attention_norm = find.required(at + "input_layernorm.weight");
  w.q = find.required(at + "self_attn.q_proj.weight");
  w.k = find.required(at + "self_attn.k_proj.weight");
  w.v = find.required(at + "self_attn.v_proj.weight");
  w.o = find.required(at + "self_attn.o_proj.weight");
  w.q_bias = find.optional(at + "self_attn.q_proj.bias");
  w.k_bias = find.optional(at + "self_attn.k_proj.bias");
  w.v_bias = find.optional(at + "self_attn.v_proj.bias");
  w.o_bias = find.optional(at + "self_attn.o_proj.bias");
  w.mlp_norm = find.required(at + "post_attention_layernorm.weight");
  w.gate = find.required(at + "mlp.gate_proj.weight");
  w.up = find.required(at + "mlp.up_proj.weight");
  w.down = find.required(at + "mlp.down_proj.weight");
  return w;
}

}  // namespace

runtime::Result<DecoderWeights> decoder_weights(const ModelConfig& config, const Parameters& parameters) {
  if (!parameters.arena().device().is_cpu()) return runtime::unimplemented("the rollout engine runs on the CPU; the model is on another device");
  DecoderWeights weights;
  weights.shape = {.layers = config.layers,
                   .hidden = config.hidden_size,
                   .heads = config.heads,
                   .kv_heads = config.kv_heads,
                   .head_dim = config.head_dim,
                   .intermediate = config.intermediate_size,
                   .vocab = config.vocab_size,
                   .norm_eps = config.rms_norm_eps};
  Lookup find(parameters);
  weights.embedding = find.required("model.embed_tokens.weight");
  for (std::int64_t layer = 0; layer < config.layers; ++layer) weights.layers.push_back(layer_weights(find, layer));
  weights.final_norm = find.required("model.norm.weight");
  weights.lm_head = config.tie_word_embeddings ? weights.embedding : find.required("lm_head.weight");
  if (runtime::Status status = find.finish(config.family); !status.ok()) return status;
  return weights;
}

}  // namespace rl
