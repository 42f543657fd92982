// GGUF metadata as a config: the keys are translated to those of config.json and read by the same
// code.
#include <cmath>
#include <nlohmann/json.hpp>

#include "rl/model/family.h"
#include "rl/model/json_fields.h"
#include "rl/model/model_config.h"
#include "rl/model/rope.h"
#include "rl/weights/gguf.h"

namespace rl {
namespace {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

// Copies metadata into a JSON object under Hugging Face's names; the first problem is kept.
class Translation {
 public:
  explicit Translation(const GgufFile& file, std::string prefix)
      : file_(file), prefix_(std::move(prefix)) {}

  void integer(std::string_view key, const char* name, bool required) {
    if (!required && file_.metadata(prefix_ + std::string(key)) == nullptr) return;
    keep(file_.integer(prefix_ + std::string(key)), name);
  }

  void number(std::string_view key, const char* name) {
    if (file_.metadata(prefix_ + std::string(key)) == nullptr) return;
    Result<double> value = file_.number(prefix_ + std::string(key));
    if (value.ok()) value = shortest_decimal(static_cast<float>(*value));
    keep(std::move(value), name);
  }

  // The key must be absent or equal.
  void only(std::string_view key, std::int64_t expected) {
    const GgufValue* value = file_.metadata(prefix_ + std::string(key));
    if (value == nullptr || value->as_integer() == expected) return;
    fail(runtime::unimplemented(file_.name() + ": " + prefix_ + std::string(key) +
                                " is not supported (only " + std::to_string(expected) + " is)"));
  }

  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  json object = json::object();
  const Status& status() const { return status_; }

 private:
  template <class T>
  void keep(Result<T> value, const char* name) {
    if (value.ok()) {
      object[name] = *value;
    } else {
      fail(value.status());
    }
  }

  const GgufFile& file_;
  std::string prefix_;
  Status status_;
};

// GGUF has no keys for Llama 3's stretched context: it stores what each frequency is divided by.
// Finds the parameters that give these divisors, among those that were ever published: factors 8
// and 32, ramp from 1 to 4, context 8192.
Status read_rope_divisors(const GgufFile& file, std::int64_t head_dim, double theta, json& out) {
  const TensorInfo* info = file.find("rope_freqs.weight");
  if (info == nullptr) return {};
  std::vector<float> divisors(static_cast<std::size_t>(head_dim / 2));
  if (Status status = file.read_f32("rope_freqs.weight", divisors); !status.ok()) return status;
  const RopeConfig plain{.theta = theta};
  RopeConfig scaled = plain;
  scaled.kind = RopeConfig::Kind::kLlama3;
  scaled.factor = divisors.back();
  scaled.original_max_position_embeddings = 8192;
  const std::vector<float> before = Rope(plain, head_dim).inverse_frequencies();
  const std::vector<float> after = Rope(scaled, head_dim).inverse_frequencies();
  for (std::size_t i = 0; i < divisors.size(); ++i) {
    const float expected = before[i] / after[i];
    if (!(std::abs(divisors[i] - expected) <= 1e-4F * expected)) {
      return runtime::unimplemented(
          file.name() +
          ": rope_freqs.weight is no Llama 3 scaling; others are not supported in GGUF files");
    }
  }
  out["rope_scaling"] = {
      {"rope_type", "llama3"},
      {"factor", scaled.factor},
      {"low_freq_factor", scaled.low_freq_factor},
      {"high_freq_factor", scaled.high_freq_factor},
      {"original_max_position_embeddings", scaled.original_max_position_embeddings}};
  return {};
}

Status read_rope_scaling(const GgufFile& file, const std::string& prefix, json& out) {
  const GgufValue* type = file.metadata(prefix + "rope.scaling.type");
  if (type == nullptr) return {};
  const std::string name(type->as_string().value_or(""));
  if (name == "none" || name.empty()) return {};
  out["rope_scaling"] = {{"rope_type", name}};  // anything but linear is refused when this is read
  if (name == "linear") {
    Result<double> factor = file.number(prefix + "rope.scaling.factor");
    if (!factor.ok()) return factor.status();
    out["rope_scaling"]["factor"] = shortest_decimal(static_cast<float>(*factor));
  }
  return {};
}

}  // namespace

Result<ModelConfig> ModelConfig::from_gguf(const GgufFile& file) {
  Result<std::string_view> architecture = file.string("general.architecture");
  if (!architecture.ok()) return architecture.status();
  const Family* family = find_gguf_family(*architecture);
  if (family == nullptr) {
    return runtime::unimplemented(file.name() + ": architecture \"" +
                                  std::string(architecture->substr(0, 60)) +
                                  "\" is not supported (" + supported_families() + " is)");
  }
  const std::string prefix = std::string(*architecture) + ".";
  Translation translation(file, prefix);
  json& object = translation.object;
  object["model_type"] = family->model_type;
  translation.integer("embedding_length", "hidden_size", true);
  translation.integer("block_count", "num_hidden_layers", true);
  translation.integer("attention.head_count", "num_attention_heads", true);
  translation.integer("attention.head_count_kv", "num_key_value_heads", false);
  translation.integer("attention.key_length", "head_dim", false);
  translation.integer("feed_forward_length", "intermediate_size", true);
  translation.integer("context_length", "max_position_embeddings", true);
  translation.integer("vocab_size", "vocab_size", false);
  translation.number("attention.layer_norm_rms_epsilon", "rms_norm_eps");
  translation.number("rope.freq_base", "rope_theta");
  translation.only("expert_count", 0);
  if (!translation.status().ok()) return translation.status();

  const TensorInfo* table = file.find("token_embd.weight");
  if (!object.contains("vocab_size") && table != nullptr && !table->shape.empty())
    object["vocab_size"] = table->shape.front();
  object["tie_word_embeddings"] = file.find("output.weight") == nullptr;
  for (const auto& [key, name] :
       {std::pair("bos", "bos_token_id"), {"eos", "eos_token_id"}, {"padding", "pad_token_id"}}) {
    const std::string full = std::string("tokenizer.ggml.") + key + "_token_id";
    if (file.metadata(full) == nullptr) continue;
    Result<std::int64_t> id = file.integer(full);
    if (!id.ok()) return id.status();
    object[name] = *id;
  }
  if (Status status = read_rope_scaling(file, prefix, object); !status.ok()) return status;
  Result<ModelConfig> config = from_json(object, file.name());
  if (!config.ok()) return config;

  // Needs the head size, hence the second reading.
  translation.only("rope.dimension_count", config->head_dim);
  translation.only("attention.value_length", config->head_dim);
  if (!translation.status().ok()) return translation.status();
  if (Status status = read_rope_divisors(file, config->head_dim, config->rope.theta, object);
      !status.ok())
    return status;
  return from_json(object, file.name());
}

}  // namespace rl
