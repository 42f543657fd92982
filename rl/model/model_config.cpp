#include "rl/model/model_config.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rl/model/family.h"
#include "rl/model/head.h"
#include "rl/model/json_fields.h"
#include "rl/model/model_config_gguf.h"
#include "rl/weights/gguf.h"
#include "runtime/core/check.h"
#include "runtime/core/json.h"

namespace rl {
namespace {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

constexpr std::int64_t kConfigWidthMax = std::int64_t{1} << 20;
constexpr std::uintmax_t kConfigBytesMax = std::uintmax_t{16} << 20;

Result<json> read_json(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) return runtime::errno_status(error.value(), path.string());
  if (bytes > kConfigBytesMax)
    return runtime::invalid_argument(path.string() + ": too large to be a model's config");
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return runtime::unavailable(path.string() + ": could not be read");
  json parsed = runtime::parse_json(text.str());
  if (parsed.is_discarded())
    return runtime::invalid_argument(path.string() +
                                     ": not valid JSON (truncated?), or nested too deep");
  return parsed;
}

// What holds for every family, and would otherwise be computed wrongly.
Status check_consistent(const ModelConfig& config, const std::string& where) {
  if (config.heads % config.kv_heads != 0) {
    return runtime::invalid_argument(
        where + ": num_attention_heads " + std::to_string(config.heads) +
        " is not a multiple of num_key_value_heads " + std::to_string(config.kv_heads));
  }
  if (config.rotated() % 2 != 0 || config.rotated() > config.head_dim) {
    return runtime::invalid_argument(where + ": head_dim " + std::to_string(config.head_dim) +
                                     " with " + std::to_string(config.rotated()) +
                                     " dimensions that turn: rotary embeddings turn pairs");
  }
  if (config.query_size() > kConfigWidthMax)
    return runtime::invalid_argument(where + ": num_attention_heads * head_dim is too large");
  return {};
}

constexpr std::int64_t kLabelsMax = std::int64_t{1} << 20;

// A classifier says so by its class, and how many labels it has by their names.
ModelConfig with_task_of(JsonFields& fields, ModelConfig config) {
  const std::vector<std::string> classes = fields.texts("architectures");
  if (classes.empty()) return config;
  ModelTask task = ModelTask::kCausalLm;
  if (classes.front().ends_with(kTokenClassification)) task = ModelTask::kTokenClassification;
  if (classes.front().ends_with(kSequenceClassification)) task = ModelTask::kSequenceClassification;
  if (task == ModelTask::kCausalLm) return config;
  const auto named = static_cast<std::int64_t>(fields.object("id2label").size());
  const std::int64_t labels = fields.integer("num_labels", named > 0 ? named : 2, 1, kLabelsMax);
  return fields.status().ok() ? with_task(std::move(config), task, labels) : config;
}

// As transformers writes the labels of a classifier without names.
void write_task(const ModelConfig& config, json& out) {
  if (config.task == ModelTask::kCausalLm) {
    // A classifier's base, made a language model again.
    for (const char* key : {"num_labels", "id2label", "label2id"}) out.erase(key);
  }
  out["architectures"] = {architecture_of(family_of(config), config.task)};
  if (config.task == ModelTask::kCausalLm) return;
  const std::int64_t labels = config.output_heads.front().outputs;
  if (out.contains("id2label") && static_cast<std::int64_t>(out["id2label"].size()) == labels)
    return;
  out["id2label"] = json::object();
  out["label2id"] = json::object();
  for (std::int64_t label = 0; label < labels; ++label) {
    const std::string name = "LABEL_" + std::to_string(label);
    out["id2label"][std::to_string(label)] = name;
    out["label2id"][name] = label;
  }
  out.erase("num_labels");
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
    return runtime::unimplemented(where + ": model family \"" + config.family.substr(0, 60) +
                                  "\" is not supported (" + supported_families() + " is)");
  }
  if (const auto ids = fields.token_ids("bos_token_id"); !ids.empty()) config.bos_id = ids.front();
  if (const auto ids = fields.token_ids("pad_token_id"); !ids.empty()) config.pad_id = ids.front();
  config.eos_ids = fields.token_ids("eos_token_id");
  if (fields.has("quantization_config")) {
    fields.refuse("quantization_config",
                  "fp32, fp16 and bf16 weights are; or take the model as a .gguf file");
  }
  family->read(fields, where, config);
  if (!fields.status().ok()) return fields.status();
  if (Status status = check_consistent(config, where); !status.ok()) return status;
  config = with_task_of(fields, std::move(config));
  if (!fields.status().ok()) return fields.status();
  config.original.json = std::make_shared<const json>(object);
  return config;
}

Result<ModelConfig> ModelConfig::load(const std::filesystem::path& model) {
  std::error_code ignored;
  if (model.extension() == ".gguf") {
    auto file = GgufFile::open(model);
    if (!file.ok()) return file.status();
    return model_config_from_gguf(**file);
  }
  const bool is_folder = std::filesystem::is_directory(model, ignored);
  if (!is_folder && !std::filesystem::exists(model, ignored)) {
    return runtime::not_found(model.string() + ": no such file or folder");
  }
  const std::filesystem::path path = is_folder ? model / "config.json" : model;
  Result<json> object = read_json(path);
  if (!object.ok()) {
    if (object.status().code() != runtime::ErrorCode::kNotFound) return object.status();
    return runtime::not_found(
        path.string() +
        ": missing; a model is a Hugging Face folder with config.json, or a .gguf file");
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
  config->original.generation = std::make_shared<const json>(std::move(*generation_object));
  return config;
}

namespace {

// What a config that no file was behind says.
json written(const ModelConfig& config) {
  CHECK(config.family == "llama");
  json out = {
      {"model_type", config.family},
      {"hidden_size", config.hidden_size},
      {"num_hidden_layers", config.layers},
      {"num_attention_heads", config.heads},
      {"num_key_value_heads", config.kv_heads},
      {"head_dim", config.head_dim},
      {"intermediate_size", config.intermediate_size},
      {"vocab_size", config.vocab_size},
      {"max_position_embeddings", config.rope.kind == RopeConfig::Kind::kDynamic
                                      ? config.rope.original_max_position_embeddings
                                      : config.max_position_embeddings},
      {"rms_norm_eps", shortest_decimal(config.norm_eps)},
      {"tie_word_embeddings", config.tie_word_embeddings},
      {"initializer_range", shortest_decimal(config.initializer_range)},
      {"hidden_act", "silu"},
      {"attention_bias", config.attention_bias},
      {"attention_dropout", 0.0},
      {"mlp_bias", config.mlp_bias},
      {"use_cache", true},
  };
  write_rope(config.rope, out);
  return out;
}

}  // namespace

json ModelConfig::to_json() const {
  json out = original.json ? *original.json : written(*this);
  out["dtype"] = "float32";
  out["torch_dtype"] = "float32";  // what transformers 4 calls dtype
  write_task(*this, out);
  out.erase("auto_map");  // code next to the checkpoint, which is not copied
  if (bos_id) out["bos_token_id"] = *bos_id;
  if (pad_id) out["pad_token_id"] = *pad_id;
  if (eos_ids.size() == 1) out["eos_token_id"] = eos_ids.front();
  if (eos_ids.size() > 1) out["eos_token_id"] = eos_ids;
  return out;
}

}  // namespace rl
