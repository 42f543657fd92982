// The small files beside a tokenizer.json.
#include <optional>

#include <nlohmann/json.hpp>

#include "rl/text/tokenizer_files.h"
#include "rl/text/tokenizer_json_fields.h"
#include "rl/text/tokenizer_small_files.h"
#include "rl/text/tokenizer_text.h"

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;
namespace fs = std::filesystem;

namespace {

// A chat template is a string, or a list of named ones of which "default" is the one for chats.
Result<std::string> template_text(const json& config) {
  const json* member = json_member(config, "chat_template");
  if (member == nullptr) return std::string();
  if (member->is_string()) return member->get<std::string>();
  if (member->is_array()) {
    for (const json& entry : *member) {
      auto name = json_string(entry, "name");
      auto text = json_string(entry, "template");
      if (name.ok() && text.ok() && *name == "default") return std::string(*text);
    }
  }
  return runtime::invalid_argument(
      "chat_template is neither a string nor a list with one named \"default\"");
}

Status add_chat_template(const fs::path& folder, const json& config, TokenizerPipeline& pipeline) {
  const fs::path jinja = folder / "chat_template.jinja";
  auto own_file = read_optional_text(jinja);
  if (!own_file.ok()) return own_file.status();
  if (*own_file) {
    pipeline.chat_template = std::move(**own_file);
    if (invalid_utf8_at(pipeline.chat_template))
      return runtime::invalid_argument(jinja.string() + ": not UTF-8");
    return {};
  }
  auto text = template_text(config);
  if (!text.ok()) return text.status().with_context((folder / "tokenizer_config.json").string());
  if (text->empty()) {
    const fs::path path = folder / "chat_template.json";
    auto separate = read_optional_json(path);
    if (!separate.ok()) return separate.status();
    text = template_text(*separate);
    if (!text.ok()) return text.status().with_context(path.string());
  }
  pipeline.chat_template = std::move(*text);
  return {};
}

}  // namespace

Status add_tokenizer_config(const fs::path& folder, TokenizerPipeline& pipeline) {
  auto config =
      folder.empty() ? Result<json>(json()) : read_optional_json(folder / "tokenizer_config.json");
  if (!config.ok()) return config.status();
  auto map = folder.empty() ? Result<json>(json())
                            : read_optional_json(folder / "special_tokens_map.json");
  if (!map.ok()) return map.status();
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                          "cls_token", "mask_token"}) {
    auto text = special_token_text(*config, key);
    if (!text && json_member(*config, key) == nullptr) text = special_token_text(*map, key);
    if (text) pipeline.special_token_texts[key] = *text;
  }
  const auto id_of = [&](const char* key) -> std::optional<std::int32_t> {
    auto text = pipeline.special_token_texts.find(key);
    return text == pipeline.special_token_texts.end() ? std::nullopt : pipeline.find(text->second);
  };
  pipeline.bos_id = id_of("bos_token");
  pipeline.eos_id = id_of("eos_token");
  pipeline.pad_id = id_of("pad_token");
  return folder.empty() ? Status() : add_chat_template(folder, *config, pipeline);
}

}  // namespace rl
