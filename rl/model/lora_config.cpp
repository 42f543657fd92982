#include "rl/model/lora_config.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rl/model/json_fields.h"
#include "runtime/core/json.h"

namespace rl {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using runtime::Result;
using runtime::Status;

constexpr std::int64_t kRankMax = 1 << 16;
constexpr std::int64_t kLoraLayersMax = 10'000;
constexpr std::uintmax_t kFileBytesMax = std::uintmax_t{16} << 20;

// A list of names, or one name.
std::vector<std::string> names(JsonFields& fields, const json& object, const char* key) {
  if (fields.has(key) && object.at(key).is_string()) return {object.at(key).get<std::string>()};
  return fields.texts(key);
}

// PEFT takes a string in place of a list for a regular expression, but for one that it knows.
void read_targets(JsonFields& fields, const json& object, LoraConfig& config) {
  config.target_modules = names(fields, object, "target_modules");
  const bool is_text = fields.has("target_modules") && object.at("target_modules").is_string();
  if (is_text && config.target_modules.front() != "all-linear") {
    config.target_pattern = config.target_modules.front();
    config.target_modules.clear();
  }
}

void read_layers(JsonFields& fields, const json& object, LoraConfig& config) {
  if (!fields.has("layers_to_transform")) return;
  const json& layers = object.at("layers_to_transform");
  const json list = layers.is_array() ? layers : json::array({layers});
  for (const json& layer : list) {
    if (!layer.is_number_integer() || layer < 0 || layer >= kLoraLayersMax)
      return fields.refuse("layers_to_transform", "numbers of blocks are");
    config.layers.push_back(layer.get<std::int64_t>());
  }
}

// Some ways of beginning take something away from the model's own weights, and PEFT does so again
// whenever such an adapter is loaded.
void refuse_changed_base(JsonFields& fields, const json& object) {
  constexpr const char* kKey = "init_lora_weights";
  if (!fields.has(kKey) || object.at(kKey).is_boolean()) return;
  const std::string how = fields.text(kKey, "");
  if (how != "gaussian" && how != "orthogonal" && how != "eva")
    fields.refuse(
        kKey,
        "true, false, gaussian, orthogonal and eva are: others change the model's own weights");
}

// The order of patterns counts, so it is the file's. None where there is no such object, which is
// for others to say.
std::vector<std::string> keys_as_written(const ordered_json& written, const char* key) {
  std::vector<std::string> keys;
  const auto found = written.find(key);
  if (found == written.end() || !found->is_object()) return keys;
  for (const auto& [name, value] : found->items()) keys.push_back(name);
  return keys;
}

template <class T>
ordered_json object_of(const std::vector<std::pair<std::string, T>>& entries) {
  ordered_json out = ordered_json::object();
  for (const auto& [name, value] : entries) out[name] = value;
  return out;
}

// What would make another kind of adapter of it.
void refuse_others(JsonFields& fields, const json& object) {
  fields.only("peft_type", "LORA", "LORA is");
  fields.only("bias", "none", "none is: biases are not trained");
  for (const char* key : {"use_dora", "use_qalora", "use_bdlora", "lora_bias"})
    fields.only(key, false, "false is");
  for (const char* key : {"layer_replication", "megatron_config", "trainable_token_indices",
                          "alora_invocation_tokens", "arrow_config", "kasa_config", "velora_config",
                          "monteclora_config"}) {
    if (fields.has(key)) fields.refuse(key, "null is");
  }
  if (!fields.texts("target_parameters").empty()) fields.refuse("target_parameters", "null is");
  refuse_changed_base(fields, object);
  if (!fields.texts("modules_to_save").empty())
    fields.refuse("modules_to_save", "null is: heads are saved with a model");
}

}  // namespace

Status LoraConfig::validate() const {
  const auto wrong = [](const std::string& field, const std::string& must) {
    return runtime::invalid_argument("LoRA: " + field + " must be " + must);
  };
  if (rank < 1 || rank > kRankMax)
    return wrong("r", "from 1 to 65536, not " + std::to_string(rank));
  for (const auto& [pattern, value] : rank_pattern) {
    if (value < 1 || value > kRankMax)
      return wrong("rank_pattern of " + pattern, "from 1 to 65536, not " + std::to_string(value));
  }
  if (!std::isfinite(alpha)) return wrong("lora_alpha", "a number");
  for (const auto& [pattern, value] : alpha_pattern) {
    if (!std::isfinite(value)) return wrong("alpha_pattern of " + pattern, "a number");
  }
  if (!(dropout >= 0.0 && dropout < 1.0)) return wrong("lora_dropout", "from 0 up to, and not, 1");
  if (target_modules.empty() == target_pattern.empty())
    return wrong("target_modules", "a list of names, or one regular expression");
  return {};
}

Result<LoraConfig> LoraConfig::from_json(const ordered_json& written, std::string_view where_view) {
  const std::string where(where_view);
  const json object = written;
  JsonFields fields(object, where);
  refuse_others(fields, object);
  if (!fields.status().ok()) return fields.status();
  LoraConfig config;
  config.rank = fields.integer("r", 8, 1, kRankMax);
  config.alpha = fields.number("lora_alpha", 8.0, -1e9);
  config.rank_stabilized = fields.boolean("use_rslora", false);
  config.dropout = fields.number("lora_dropout", 0.0, 0.0);
  config.base_model = fields.text("base_model_name_or_path", "");
  read_targets(fields, object, config);
  if (fields.has("exclude_modules") && object.at("exclude_modules").is_string())
    fields.refuse("exclude_modules", "a list of names is, not a regular expression");
  config.exclude_modules = names(fields, object, "exclude_modules");
  read_layers(fields, object, config);
  JsonFields ranks(fields.object("rank_pattern"), where + ": rank_pattern");
  for (const std::string& pattern : keys_as_written(written, "rank_pattern"))
    config.rank_pattern.emplace_back(pattern, ranks.integer(pattern, 1, kRankMax));
  fields.merge(ranks);
  JsonFields alphas(fields.object("alpha_pattern"), where + ": alpha_pattern");
  for (const std::string& pattern : keys_as_written(written, "alpha_pattern"))
    config.alpha_pattern.emplace_back(pattern, alphas.number(pattern, 0.0, -1e9));
  fields.merge(alphas);
  if (!fields.status().ok()) return fields.status();
  if (Status status = config.validate(); !status.ok()) return status.with_context(where);
  return config;
}

Result<LoraConfig> LoraConfig::load(const std::filesystem::path& folder) {
  std::error_code ignored;
  const std::filesystem::path path =
      std::filesystem::is_directory(folder, ignored) ? folder / "adapter_config.json" : folder;
  const std::uintmax_t bytes = std::filesystem::file_size(path, ignored);
  if (ignored)
    return runtime::not_found(path.string() +
                              ": missing; an adapter is a folder as PEFT saves it, with "
                              "adapter_config.json and adapter_model.safetensors");
  if (bytes > kFileBytesMax)
    return runtime::invalid_argument(path.string() + ": too large to be an adapter's config");
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  const ordered_json object = runtime::parse_json<ordered_json>(text.str());
  if (object.is_discarded())
    return runtime::invalid_argument(path.string() + ": not valid JSON (truncated?)");
  return from_json(object, path.string());
}

ordered_json LoraConfig::to_json() const {
  ordered_json out = {
      {"peft_type", "LORA"},
      {"task_type", "CAUSAL_LM"},
      {"r", rank},
      {"lora_alpha", alpha == std::floor(alpha) ? ordered_json(static_cast<std::int64_t>(alpha))
                                                : ordered_json(alpha)},
      {"use_rslora", rank_stabilized},
      {"lora_dropout", dropout},
      {"bias", "none"},
      {"fan_in_fan_out", false},
      {"inference_mode", true},
      {"init_lora_weights", true},
      {"rank_pattern", object_of(rank_pattern)},
      {"alpha_pattern", object_of(alpha_pattern)},
      {"exclude_modules", exclude_modules.empty() ? ordered_json() : ordered_json(exclude_modules)},
      {"layers_to_transform", layers.empty() ? ordered_json() : ordered_json(layers)},
      {"base_model_name_or_path", base_model},
  };
  const bool all = target_modules == std::vector<std::string>{"all-linear"};
  out["target_modules"] = !target_pattern.empty() ? ordered_json(target_pattern)
                          : all                   ? ordered_json("all-linear")
                                                  : ordered_json(target_modules);
  return out;
}

}  // namespace rl
