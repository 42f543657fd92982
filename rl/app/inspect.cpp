#include "rl/app/inspect.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rl/app/command_line.h"
#include "rl/app/model_option.h"
#include "rl/model/model_config.h"
#include "rl/model/parameters.h"
#include "rl/template/chat_templates.h"
#include "rl/tokenizer/tokenizer.h"
#include "rl/weights/weight_source.h"
#include "runtime/core/printable_text.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::Result;

struct Precision {
  const char* name;
  double bytes;  // a parameter
};

// Weights as others hold them, and what training in fp32 with AdamW holds: weights, gradients and
// two moments.
constexpr std::array kPrecisions = {Precision{"float32", 4}, Precision{"bfloat16", 2},
                                    Precision{"int8", 1},
                                    Precision{"training (float32, AdamW)", 16}};

std::string size_text(double bytes) {
  static constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  char text[40];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", bytes, kUnits[unit]);
  return text;
}

std::string count_text(std::int64_t count) {
  char text[40];
  if (count >= 1'000'000'000)
    std::snprintf(text, sizeof text, "%.2f billion", static_cast<double>(count) / 1e9);
  else if (count >= 1'000'000)
    std::snprintf(text, sizeof text, "%.1f million", static_cast<double>(count) / 1e6);
  else
    std::snprintf(text, sizeof text, "%lld", static_cast<long long>(count));
  return text;
}

const char* task_name(ModelTask task) {
  switch (task) {
    case ModelTask::kCausalLm: return "causal language model";
    case ModelTask::kTokenClassification: return "token classifier";
    case ModelTask::kSequenceClassification: break;
  }
  return "sequence classifier";
}

const char* rope_name(RopeConfig::Kind kind) {
  switch (kind) {
    case RopeConfig::Kind::kDefault: return "default";
    case RopeConfig::Kind::kLinear: return "linear";
    case RopeConfig::Kind::kDynamic: return "dynamic";
    case RopeConfig::Kind::kLlama3: return "llama3";
    case RopeConfig::Kind::kYarn: return "yarn";
    case RopeConfig::Kind::kLongRope: break;
  }
  return "longrope";
}

/// What is found, and what keeps the model from being used.
class Inspection {
 public:
  explicit Inspection(std::string model) : model_(std::move(model)) { found_["model"] = model_; }

  void run() {
    const Result<ModelConfig> config = ModelConfig::load(model_);
    if (config.ok())
      describe(*config);
    else
      trouble(config.status());
    weights(config.ok() ? &*config : nullptr);
    tokenizer();
    found_["not_supported"] = troubles_;
  }

  const ordered_json& found() const { return found_; }
  bool usable() const { return troubles_.empty(); }

 private:
  void trouble(const runtime::Status& status) { troubles_.push_back(status.message()); }

  void describe(const ModelConfig& config) {
    found_["family"] = config.family;
    found_["task"] = task_name(config.task);
    std::int64_t count = 0;
    for (const ParameterSpec& spec : parameter_layout(config)) count += spec.count;
    found_["parameters"] = count;
    found_["layers"] = config.layers;
    found_["hidden_size"] = config.hidden_size;
    found_["heads"] = config.heads;
    found_["kv_heads"] = config.kv_heads;
    found_["vocab_size"] = config.vocab_size;
    found_["context"] = config.max_position_embeddings;
    found_["rope"] = config.rotated() == 0 ? "none" : rope_name(config.rope.kind);
    if (config.moe)
      found_["experts"] = {{"in_all", config.moe->experts},
                           {"a_token", config.moe->experts_per_token}};
    if (config.tie_word_embeddings) found_["tied_embeddings"] = true;
    ordered_json heads = ordered_json::array();
    for (const HeadConfig& head : config.output_heads)
      heads.push_back({{"name", head.name}, {"outputs", head.outputs}});
    if (!heads.empty()) found_["heads_of_output"] = std::move(heads);
    found_["memory_bytes"] = ordered_json::object();
    for (const Precision& precision : kPrecisions)
      found_["memory_bytes"][precision.name] =
          static_cast<std::int64_t>(precision.bytes * static_cast<double>(count));
    found_["kv_cache_bytes_a_token"] =
        2 * config.layers * config.kv_size() * static_cast<std::int64_t>(sizeof(float));
    found_["eos_token_ids"] = config.eos_ids;
  }

  void weights(const ModelConfig* config) {
    Result<std::unique_ptr<WeightSource>> source = open_weights(model_);
    if (!source.ok()) return trouble(source.status());
    std::map<std::string, std::int64_t> tensors, elements;
    std::int64_t all = 0;
    for (const TensorInfo& tensor : (*source)->tensors()) {
      const std::string dtype(dtype_name(tensor.dtype));
      ++tensors[dtype];
      elements[dtype] += tensor.element_count();
      all += tensor.element_count();
    }
    found_["stored"] = ordered_json::array();
    for (const auto& [dtype, count] : tensors)
      found_["stored"].push_back(
          {{"dtype", dtype}, {"tensors", count}, {"elements", elements[dtype]}});
    found_["stored_elements"] = all;
    if (config == nullptr) return;
    const bool is_gguf = std::filesystem::path(model_).extension() == ".gguf";
    if (runtime::Status status = check_weights(*config, **source, is_gguf); !status.ok())
      trouble(status);
  }

  void tokenizer() {
    const Result<Tokenizer> tokenizer = Tokenizer::load(model_);
    if (tokenizer.status().code() == runtime::ErrorCode::kNotFound)
      found_["tokenizer"] = nullptr;  // ids can be had without one
    else if (!tokenizer.ok())
      trouble(tokenizer.status());
    if (!tokenizer.ok()) return;
    found_["tokenizer"] = {{"kind", tokenizer->kind()}, {"tokens", tokenizer->vocab_size()}};
    const auto special = [&](const char* name, std::optional<std::int32_t> id) {
      if (id) found_["tokenizer"][name] = tokenizer->id_to_token(*id);
    };
    special("bos", tokenizer->bos_id());
    special("eos", tokenizer->eos_id());
    special("pad", tokenizer->pad_id());
    if (const auto end = tokenizer->eos_id(); end && found_.contains("eos_token_ids")) {
      ordered_json& ids = found_["eos_token_ids"];  // generation ends at any of them
      if (std::find(ids.begin(), ids.end(), *end) == ids.end()) ids.push_back(*end);
    }
    const std::string& source = tokenizer->chat_template_source();
    found_["chat_template"] =
        source.empty() ? ordered_json() : ordered_json{{"bytes", source.size()}};
    if (source.empty()) return;
    if (tokenizer->chat_templates().size() > 1) {
      for (const auto& [name, text] : tokenizer->chat_templates())
        found_["chat_template"]["names"].push_back(name);
    }
    if (const auto parsed = ChatTemplates::parse(tokenizer->chat_templates()); !parsed.ok())
      trouble(parsed.status().with_context("chat template"));
  }

  const std::string model_;
  ordered_json found_;
  std::vector<std::string> troubles_;
};

void print_line(const char* name, const std::string& text) {
  std::printf("%-15s %s\n", name, runtime::terminal_text(STDOUT_FILENO, text).c_str());
}

void print_found(const ordered_json& found) {
  print_line("model", found["model"]);
  if (found.contains("family")) {
    print_line("family",
               found["family"].get<std::string>() + ", " + found["task"].get<std::string>());
    std::string shape = std::to_string(found["layers"].get<std::int64_t>()) + " layers of " +
                        std::to_string(found["hidden_size"].get<std::int64_t>()) + ", " +
                        std::to_string(found["heads"].get<std::int64_t>()) + " heads, " +
                        std::to_string(found["kv_heads"].get<std::int64_t>()) +
                        " of keys and values";
    if (found.contains("experts"))
      shape += ", " + found["experts"]["a_token"].dump() + " of " +
               found["experts"]["in_all"].dump() + " experts";
    print_line("parameters", count_text(found["parameters"]) +
                                 (found.contains("tied_embeddings") ? ", tied embeddings" : ""));
    print_line("shape", shape);
    print_line("context",
               found["context"].dump() + " tokens, RoPE " + found["rope"].get<std::string>());
    std::string memory;
    for (const auto& [name, bytes] : found["memory_bytes"].items())
      memory += (memory.empty() ? "" : ", ") + size_text(bytes) + " " + name;
    print_line("memory", memory);
    print_line("KV cache", size_text(found["kv_cache_bytes_a_token"]) + " a token");
  }
  if (found.contains("stored")) {
    std::string stored;
    for (const auto& kind : found["stored"])
      stored += (stored.empty() ? "" : ", ") + kind["tensors"].dump() + " tensors " +
                kind["dtype"].get<std::string>();
    print_line("stored", stored);
  }
  if (found.contains("tokenizer") && found["tokenizer"].is_null()) print_line("tokenizer", "none");
  if (found.contains("tokenizer") && !found["tokenizer"].is_null()) {
    const ordered_json& tokenizer = found["tokenizer"];
    std::string text =
        tokenizer["kind"].get<std::string>() + ", " + tokenizer["tokens"].dump() + " tokens";
    for (const char* name : {"bos", "eos", "pad"}) {
      if (tokenizer.contains(name))
        text += std::string(", ") + name + " " + tokenizer[name].get<std::string>();
    }
    print_line("tokenizer", text);
    print_line("chat template", found["chat_template"].is_null()
                                    ? "none"
                                    : found["chat_template"]["bytes"].dump() + " bytes");
  }
  for (const auto& trouble : found["not_supported"]) print_line("not supported", trouble);
}

}  // namespace

int inspect_command(int argc, char** argv) {
  CLI::App app(
      "Says what a model is and takes, from its headers alone, and what of it is not supported.",
      "starling inspect");
  ModelOption source;
  bool json = false;
  app.add_option("MODEL", source.model, "a Hugging Face folder, a .gguf file, or a name on the hub")
      ->required();
  app.add_option("--revision", source.revision, "of a model on the hub");
  app.add_flag("--json", json, "as one JSON object");
  if (const std::optional<int> exit = parse_command_line(app, argc, argv)) return *exit;
  const Result<std::filesystem::path> model = source.locate(HubNeed::kModel);
  if (!model.ok()) return fail(model.status());
  Inspection inspection(model->string());
  inspection.run();
  if (json)
    std::cout << inspection.found().dump(2, ' ', false, ordered_json::error_handler_t::replace)
              << std::endl;
  else
    print_found(inspection.found());
  return inspection.usable() ? 0 : 1;
}

}  // namespace rl
