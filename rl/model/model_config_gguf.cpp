#include "rl/model/model_config_gguf.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "rl/model/family.h"
#include "rl/model/gguf_keys.h"
#include "rl/model/gguf_rope.h"
#include "rl/model/json_fields.h"
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

/// The id of tokenizer.ggml.ROLE_token_id; nullopt where the file names none. -1, as 32 bits with
/// or without a sign, is converters' way to say none.
Result<std::optional<std::int64_t>> read_token_id(const GgufFile& file, const char* role) {
  const std::string key = std::string("tokenizer.ggml.") + role + "_token_id";
  if (file.metadata(key) == nullptr) return std::optional<std::int64_t>();
  const Result<std::int64_t> id = file.integer(key);
  if (!id.ok()) return id.status();
  if (*id == -1 || *id == UINT32_MAX) return std::optional<std::int64_t>();
  return std::optional(*id);
}

// The texts of tokens that end a turn. A file without an eot_token_id means the token with such a
// text, as llama.cpp takes it.
constexpr std::array<std::string_view, 6> kTurnEnds = {"<|eot_id|>", "<|im_end|>",    "<|end|>",
                                                       "<EOT>",      "<end_of_turn>", "_<EOT>"};

/// The first token with a text of kTurnEnds; nullopt: the file has none, or no tokens.
Result<std::optional<std::int64_t>> find_turn_end(const GgufFile& file) {
  constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
  if (file.metadata(kTokens) == nullptr) return std::optional<std::int64_t>();
  const Result<std::vector<std::string_view>> tokens = file.strings(kTokens);
  if (!tokens.ok()) return tokens.status();
  for (const std::string_view text : kTurnEnds) {
    const auto found = std::ranges::find(*tokens, text);
    if (found != tokens->end()) return std::optional<std::int64_t>(found - tokens->begin());
  }
  return std::optional<std::int64_t>();
}

// Generation ends at the end of the text, of a turn, and of a message to a tool.
Status read_token_ids(const GgufFile& file, json& out) {
  json ends = json::array();
  for (const auto& [role, name] : {std::pair("bos", "bos_token_id"),
                                   {"padding", "pad_token_id"},
                                   {"eos", ""},
                                   {"eot", ""},
                                   {"eom", ""}}) {
    Result<std::optional<std::int64_t>> id = read_token_id(file, role);
    if (id.ok() && !*id && role == std::string_view("eot")) id = find_turn_end(file);
    if (!id.ok()) return id.status();
    if (!*id) continue;
    if (const auto size = out.find("vocab_size");
        size != out.end() && **id >= size->get<std::int64_t>())
      return runtime::invalid_argument(file.name() + ": tokenizer.ggml." + role + "_token_id is " +
                                       std::to_string(**id) + ", outside the vocabulary of " +
                                       size->dump());
    if (*name != '\0')
      out[name] = **id;
    else if (std::find(ends.begin(), ends.end(), **id) == ends.end())
      ends.push_back(**id);
  }
  if (!ends.empty()) out["eos_token_id"] = ends.size() == 1 ? ends.front() : ends;
  return {};
}

}  // namespace

Result<ModelConfig> model_config_from_gguf(const GgufFile& file) {
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
  if (Status status = read_token_ids(file, object); !status.ok()) return status;
  if (Status status = read_gguf_rope_scaling(
          file, prefix, object["max_position_embeddings"].get<std::int64_t>(), object);
      !status.ok())
    return status;
  Result<ModelConfig> config = ModelConfig::from_json(object, file.name());
  if (!config.ok()) return config;

  // Needs the head size, hence the second reading.
  translation.only("rope.dimension_count", config->head_dim);
  translation.only("attention.value_length", config->head_dim);
  if (!translation.status().ok()) return translation.status();
  if (Status status =
          check_gguf_keys(file, prefix, config->head_dim, config->max_position_embeddings);
      !status.ok())
    return status;
  if (Status status = read_gguf_rope_divisors(file, config->head_dim, config->rope.theta, object);
      !status.ok())
    return status;
  return ModelConfig::from_json(object, file.name());
}

}  // namespace rl
