#include "rl/model/model_config.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rl/model/family.h"
#include "rl/model/json_fields.h"
#include "rl/weights/gguf.h"

namespace rl {
namespace {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

// Limits on what a file may claim: far above any model, low enough that no product of sizes overflows.
constexpr std::int64_t kLayersMax = 10'000;
constexpr std::int64_t kWidthMax = std::int64_t{1} << 20;
constexpr std::int64_t kHeadsMax = std::int64_t{1} << 14;
constexpr std::int64_t kVocabMax = std::int64_t{1} << 24;
constexpr std::int64_t kPositionsMax = std::int64_t{1} << 26;
constexpr std::uintmax_t kConfigBytesMax = std::uintmax_t{16} << 20;

Result<json> read_json(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) return runtime::errno_status(error.value(), path.string());
  if (bytes > kConfigBytesMax) return runtime::invalid_argument(path.string() + ": too large to be a model's config");
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return runtime::unavailable(path.string() + ": could not be read");
  json parsed = json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) return runtime::invalid_argument(path.string() + ": not valid JSON (truncated?)");
  return parsed;
}

// The newer `rope_parameters` holds theta and the scaling; before, `rope_theta` stood beside `rope_scaling`.
RopeConfig read_rope(JsonFields& fields, const json& object, const std::string& where, std::int64_t positions) {
  RopeConfig rope;
  rope.theta = fields.number("rope_theta", rope.theta, 1.0);
  const std::string key = fields.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (!fields.has(key)) return rope;
  JsonFields scaling(fields.object(key), where + ": " + key);
  rope.theta = scaling.number("rope_theta", rope.theta, 1.0);
  const std::string kind = scaling.text(scaling.has("rope_type") ? "rope_type" : "type", "default");
  scaling.only("partial_rotary_factor", 1.0, "1 is");
  if (kind == "linear") {
    rope.kind = RopeConfig::Kind::kLinear;
    rope.factor = scaling.number("factor", 1.0, 1.0);
  } else if (kind == "llama3") {
    rope.kind = RopeConfig::Kind::kLlama3;
    rope.factor = scaling.number("factor", 8.0, 1.0);
    rope.low_freq_factor = scaling.number("low_freq_factor", 1.0, 1e-6);
    rope.high_freq_factor = scaling.number("high_freq_factor", 4.0, 1e-6);
    rope.original_max_position_embeddings = scaling.integer("original_max_position_embeddings", positions, 1, kPositionsMax);
    if (rope.high_freq_factor <= rope.low_freq_factor) {
      scaling.refuse("high_freq_factor", "one above low_freq_factor is");
    }
  } else if (kind != "default") {
    scaling.refuse(scaling.has("rope_type") ? "rope_type" : "type", "default, linear and llama3 are");
  }
  fields.merge(scaling);
  return rope;
}

void write_rope(const RopeConfig& rope, json& out) {
  out["rope_theta"] = rope.theta;
  switch (rope.kind) {
    case RopeConfig::Kind::kDefault: out["rope_scaling"] = nullptr; break;
    case RopeConfig::Kind::kLinear: out["rope_scaling"] = {{"rope_type", "linear"}, {"factor", rope.factor}}; break;
    case RopeConfig::Kind::kLlama3:
      out["rope_scaling"] = {{"rope_type", "llama3"},
                             {"factor", rope.factor},
                             {"low_freq_factor", rope.low_freq_factor},
                             {"high_freq_factor", rope.high_freq_factor},
                             {"original_max_position_embeddings", rope.original_max_position_embeddings}};
  }
}

// What holds for every family, and would otherwise be computed wrongly.
Status check_consistent(const ModelConfig& config, const std::string& where) {
  if (config.heads % config.kv_heads != 0) {
    return runtime::invalid_argument(where + ": num_attention_heads " + std::to_string(config.heads) +
                                     " is no multiple of num_key_value_heads " + std::to_string(config.kv_heads));
  }
  if (config.head_dim % 2 != 0) {
    return runtime::invalid_argument(where + ": head_dim " + std::to_string(config.head_dim) +
                                     " is odd, rotary embeddings turn pairs");
  }
  if (config.query_size() > kWidthMax) return runtime::invalid_argument(where + ": num_attention_heads * head_dim is too large");
  return {};
}

}  // namespace

Result<ModelConfig> ModelConfig::from_json(const json& object, std::string_view where_view) {
  const std::string where(where_view);
  JsonFields fields(object, where);
  ModelConfig config;
  config.family = fields.text("model_type", "");
  if (!fields.status().ok()) return fields.status();
  const Family* family = find_family(config.family);
  if (family == nullptr) {
    if (config.family.empty()) return runtime::invalid_argument(where + ": model_type is missing");
    return runtime::unimplemented(where + ": model family \"" + config.family.substr(0, 60) + "\" is not supported (" +
                                  supported_families() + " is)");
  }
  config.hidden_size = fields.integer("hidden_size", 1, kWidthMax);
  config.layers = fields.integer("num_hidden_layers", 1, kLayersMax);
  config.heads = fields.integer("num_attention_heads", 1, kHeadsMax);
  config.kv_heads = fields.integer("num_key_value_heads", config.heads, 1, kHeadsMax);
  config.head_dim = fields.integer("head_dim", config.hidden_size / config.heads, 1, kWidthMax);
  config.intermediate_size = fields.integer("intermediate_size", 1, kWidthMax);
  config.vocab_size = fields.integer("vocab_size", 1, kVocabMax);
  config.max_position_embeddings = fields.integer("max_position_embeddings", 2048, 1, kPositionsMax);
  config.rms_norm_eps = static_cast<float>(fields.number("rms_norm_eps", 1e-6, 0.0));
  config.rope = read_rope(fields, object, where, config.max_position_embeddings);
  config.tie_word_embeddings = fields.boolean("tie_word_embeddings", false);
  config.initializer_range = static_cast<float>(fields.number("initializer_range", 0.02, 0.0));
  if (const auto ids = fields.token_ids("bos_token_id"); !ids.empty()) config.bos_id = ids.front();
  if (const auto ids = fields.token_ids("pad_token_id"); !ids.empty()) config.pad_id = ids.front();
  config.eos_ids = fields.token_ids("eos_token_id");
  if (fields.has("quantization_config")) {
    fields.refuse("quantization_config", "fp32, fp16 and bf16 weights are; or take the model as a .gguf file");
  }
  family->read(fields, config);
  if (!fields.status().ok()) return fields.status();
  if (Status status = check_consistent(config, where); !status.ok()) return status;
  return config;
}

Result<ModelConfig> ModelConfig::load(const std::filesystem::path& model) {
  std::error_code ignored;
  if (model.extension() == ".gguf") {
    auto file = GgufFile::open(model);
    if (!file.ok()) return file.status();
    return from_gguf(**file);
  }
  const bool is_folder = std::filesystem::is_directory(model, ignored);
  if (!is_folder && !std::filesystem::exists(model, ignored)) {
    return runtime::not_found(model.string() + ": no such file or folder");
  }
  const std::filesystem::path path = is_folder ? model / "config.json" : model;
  Result<json> object = read_json(path);
  if (!object.ok()) {
    if (object.status().code() != runtime::ErrorCode::kNotFound) return object.status();
    return runtime::not_found(path.string() + ": missing; a model is a Hugging Face folder with config.json, or a .gguf file");
  }
  Result<ModelConfig> config = from_json(*object, path.string());
  if (!config.ok()) return config;

  const std::filesystem::path generation = path.parent_path() / "generation_config.json";
  if (!std::filesystem::exists(generation, ignored)) return config;
  Result<json> generation_object = read_json(generation);
  if (!generation_object.ok()) return generation_object.status();
  JsonFields fields(*generation_object, generation.string());
  std::vector<std::int32_t> eos_ids = fields.token_ids("eos_token_id");
  if (!fields.status().ok()) return fields.status();
  if (!eos_ids.empty()) config->eos_ids = std::move(eos_ids);
  return config;
}

json ModelConfig::to_json() const {
  const Family& family = family_of(*this);
  json out = {
      {"architectures", {family.architecture}},
      {"model_type", family.model_type},
      {"dtype", "float32"},
      {"torch_dtype", "float32"},  // what transformers 4 calls dtype
      {"hidden_size", hidden_size},
      {"num_hidden_layers", layers},
      {"num_attention_heads", heads},
      {"num_key_value_heads", kv_heads},
      {"head_dim", head_dim},
      {"intermediate_size", intermediate_size},
      {"vocab_size", vocab_size},
      {"max_position_embeddings", max_position_embeddings},
      {"rms_norm_eps", shortest_decimal(rms_norm_eps)},
      {"tie_word_embeddings", tie_word_embeddings},
      {"initializer_range", shortest_decimal(initializer_range)},
      {"use_cache", true},
  };
  write_rope(rope, out);
  if (bos_id) out["bos_token_id"] = *bos_id;
  if (pad_id) out["pad_token_id"] = *pad_id;
  if (eos_ids.size() == 1) out["eos_token_id"] = eos_ids.front();
  if (eos_ids.size() > 1) out["eos_token_id"] = eos_ids;
  family.write(*this, out);
  return out;
}

}  // namespace rl
