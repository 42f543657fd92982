// Llama 2, 3, 3.x and SmolLM: RMS norm before each block, rotary positions, grouped-query attention, SiLU-gated MLP, no biases.
#include <nlohmann/json.hpp>
#include <string>

#include "rl/model/family.h"
#include "rl/model/json_fields.h"

namespace rl {
namespace {

void read(JsonFields& fields, ModelConfig& /*config*/) {
  fields.only("hidden_act", "silu", "silu is");
  fields.only("attention_bias", false, "weights without bias are");
  fields.only("mlp_bias", false, "weights without bias are");
  fields.only("attention_dropout", 0.0, "0 is");
  fields.only("rope_interleaved", false, "false is");
}

void write(const ModelConfig& /*config*/, nlohmann::json& json) {
  json["hidden_act"] = "silu";
  json["attention_bias"] = false;
  json["attention_dropout"] = 0.0;
  json["mlp_bias"] = false;
}

std::vector<FamilyParameter> parameters(const ModelConfig& c) {
  std::vector<FamilyParameter> list;
  const auto weight = [&](std::string name, std::string gguf_name, std::int64_t out, std::int64_t in,
                          GgufRows rows = GgufRows::kSame) {
    list.push_back({.name = std::move(name), .shape = {out, in}, .gguf_name = std::move(gguf_name), .gguf_rows = rows});
  };
  const auto norm = [&](std::string name, std::string gguf_name) {
    list.push_back({.name = std::move(name), .shape = {c.hidden_size}, .gguf_name = std::move(gguf_name), .is_norm = true});
  };
  weight("model.embed_tokens.weight", "token_embd.weight", c.vocab_size, c.hidden_size);
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string hf = "model.layers." + std::to_string(layer) + ".";
    const std::string gguf = "blk." + std::to_string(layer) + ".";
    norm(hf + "input_layernorm.weight", gguf + "attn_norm.weight");
    weight(hf + "self_attn.q_proj.weight", gguf + "attn_q.weight", c.query_size(), c.hidden_size, GgufRows::kUnpermuteQueries);
    weight(hf + "self_attn.k_proj.weight", gguf + "attn_k.weight", c.kv_size(), c.hidden_size, GgufRows::kUnpermuteKeys);
    weight(hf + "self_attn.v_proj.weight", gguf + "attn_v.weight", c.kv_size(), c.hidden_size);
    weight(hf + "self_attn.o_proj.weight", gguf + "attn_output.weight", c.hidden_size, c.query_size());
    norm(hf + "post_attention_layernorm.weight", gguf + "ffn_norm.weight");
    weight(hf + "mlp.gate_proj.weight", gguf + "ffn_gate.weight", c.intermediate_size, c.hidden_size);
    weight(hf + "mlp.up_proj.weight", gguf + "ffn_up.weight", c.intermediate_size, c.hidden_size);
    weight(hf + "mlp.down_proj.weight", gguf + "ffn_down.weight", c.hidden_size, c.intermediate_size);
  }
  norm("model.norm.weight", "output_norm.weight");
  if (!c.tie_word_embeddings) weight("lm_head.weight", "output.weight", c.vocab_size, c.hidden_size);
  return list;
}

bool ignorable(const ModelConfig& config, std::string_view tensor) {
  if (tensor.ends_with("rotary_emb.inv_freq")) return true;  // a buffer that old versions of transformers saved
  if (tensor == "rope_freqs.weight") return true;            // GGUF's form of the llama3 scaling, read with the metadata
  return config.tie_word_embeddings && (tensor == "lm_head.weight" || tensor == "output.weight");
}

}  // namespace

const Family kLlamaFamily{
    .model_type = "llama",
    .architecture = "LlamaForCausalLM",
    .gguf_architecture = "llama",
    .read = read,
    .write = write,
    .parameters = parameters,
    .ignorable = ignorable,
};

}  // namespace rl
