#include "rl/model/gguf_keys.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rl/weights/gguf.h"

namespace rl {
namespace {

using runtime::Status;

// Read by model_config_gguf.cpp and gguf_rope.cpp, which judge their values.
constexpr std::string_view kReadKeys[] = {"embedding_length",
                                          "block_count",
                                          "context_length",
                                          "vocab_size",
                                          "feed_forward_length",
                                          "expert_count",
                                          "attention.head_count",
                                          "attention.head_count_kv",
                                          "attention.key_length",
                                          "attention.value_length",
                                          "attention.layer_norm_rms_epsilon",
                                          "rope.freq_base",
                                          "rope.dimension_count",
                                          "rope.scale_linear",
                                          "rope.scaling.type",
                                          "rope.scaling.factor",
                                          "rope.scaling.attn_factor",
                                          "rope.scaling.original_context_length",
                                          "rope.scaling.yarn_ext_factor",
                                          "rope.scaling.yarn_attn_factor",
                                          "rope.scaling.yarn_beta_fast",
                                          "rope.scaling.yarn_beta_slow",
                                          "rope.scaling.yarn_log_multiplier"};

// Says nothing about the numbers of a language model: how it was made, and how embeddings of whole
// texts are taken from it.
constexpr std::string_view kIdleKeys[] = {"rope.scaling.finetuned", "pooling_type",
                                          "tensor_data_layout"};

bool is_one_of(std::span<const std::string_view> keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// Zero, false, or a list of them.
bool is_off(const GgufValue& value) {
  if (const auto flag = value.as_bool()) return !*flag;
  if (const GgufArray* list = value.as_array()) {
    const auto numbers = list->numbers();
    return numbers &&
           std::all_of(numbers->begin(), numbers->end(), [](double n) { return n == 0; });
  }
  return value.as_number() == 0.0;
}

/// Whether a key that is not read does nothing at this value.
bool does_nothing_in_gguf(std::string_view key, const GgufValue& value, std::int64_t head_dim,
                          std::int64_t positions) {
  if (key == "attention.causal") return value.as_bool() == true;
  if (is_off(value)) return true;  // by llama.cpp's custom: an option that is not used
  const std::optional<double> number = value.as_number();
  if (!number) return false;
  if (key == "logit_scale" || key == "embedding_scale" || key == "residual_scale")
    return *number == 1.0;
  if (key == "attention.scale")
    return std::abs(*number * std::sqrt(static_cast<double>(head_dim)) - 1.0) < 1e-6;
  if (key == "attention.sliding_window") return *number >= static_cast<double>(positions);
  return false;
}

std::string shown_gguf_value(const GgufValue& value) {
  if (const auto text = value.as_string()) return "\"" + std::string(text->substr(0, 60)) + "\"";
  if (const auto flag = value.as_bool()) return *flag ? "true" : "false";
  if (const auto integer = value.as_integer()) return std::to_string(*integer);
  if (const auto number = value.as_number()) return std::to_string(*number);
  return "a list";
}

}  // namespace

Status check_gguf_keys(const GgufFile& file, const std::string& prefix, std::int64_t head_dim,
                       std::int64_t positions) {
  const auto refuse = [&](const GgufEntry& entry, const std::string& cure) {
    return runtime::unimplemented(file.name() + ": " + entry.key.substr(0, 100) + " = " +
                                  shown_gguf_value(entry.value) + " is not supported (" + cure +
                                  ")");
  };
  for (const GgufEntry& entry : file.entries()) {
    const std::string_view name = entry.key;
    if (name == "general.type" && entry.value.as_string() != "model")
      return refuse(entry, "a file of type model is");
    if (!name.starts_with(prefix)) continue;
    const std::string_view key = name.substr(prefix.size());
    if (is_one_of(kReadKeys, key) || is_one_of(kIdleKeys, key) ||
        does_nothing_in_gguf(key, entry.value, head_dim, positions))
      continue;
    return refuse(entry,
                  "it may change what the model computes; take the model's Hugging Face folder");
  }
  return {};
}

}  // namespace rl
