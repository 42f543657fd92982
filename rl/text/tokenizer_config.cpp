// The small files beside a tokenizer.json.
#include <optional>

#include <nlohmann/json.hpp>

#include "rl/text/tokenizer_files.h"
#include "rl/text/tokenizer_json_fields.h"
#include "rl/text/tokenizer_text.h"
#include "rl/weights/mapped_file.h"

namespace rl {

using nlohmann::json;
using runtime::ErrorCode;
using runtime::Result;
using runtime::Status;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kConfigBytesMax = 64 << 20;

// The file's text, or an empty optional when there is no such file.
Result<std::optional<std::string>> read_optional(const fs::path& path) {
  auto file = MappedFile::open(path);
  if (!file.ok()) {
    if (file.status().code() == ErrorCode::kNotFound) return std::optional<std::string>();
    return file.status();
  }
  if (file->bytes().size() > kConfigBytesMax) return runtime::invalid_argument(path.string() + ": too long");
  return std::optional(std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()));
}

// Its JSON object; null when there is no such file.
Result<json> read_json(const fs::path& path) {
  auto text = read_optional(path);
  if (!text.ok()) return text.status();
  if (!*text) return json();
  json value = json::parse(**text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object()) return runtime::invalid_argument(path.string() + ": not a JSON object; the file is damaged, fetch it again");
  return value;
}

// A special token is a string, or an object with its content.
std::optional<std::string> token_text(const json& config, const char* key) {
  const json* member = json_member(config, key);
  if (member != nullptr && member->is_object()) member = json_member(*member, "content");
  if (member == nullptr || !member->is_string()) return std::nullopt;
  return member->get<std::string>();
}

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
  return runtime::invalid_argument("chat_template is neither a string nor a list with one named \"default\"");
}

Status add_chat_template(const fs::path& folder, const json& config, TokenizerPipeline& pipeline) {
  const fs::path jinja = folder / "chat_template.jinja";
  auto own_file = read_optional(jinja);
  if (!own_file.ok()) return own_file.status();
  if (*own_file) {
    pipeline.chat_template = std::move(**own_file);
    if (invalid_utf8_at(pipeline.chat_template)) return runtime::invalid_argument(jinja.string() + ": not UTF-8");
    return {};
  }
  auto text = template_text(config);
  if (!text.ok()) return text.status().with_context((folder / "tokenizer_config.json").string());
  if (text->empty()) {
    const fs::path path = folder / "chat_template.json";
    auto separate = read_json(path);
    if (!separate.ok()) return separate.status();
    text = template_text(*separate);
    if (!text.ok()) return text.status().with_context(path.string());
  }
  pipeline.chat_template = std::move(*text);
  return {};
}

}  // namespace

Status add_tokenizer_config(const fs::path& folder, TokenizerPipeline& pipeline) {
  auto config = read_json(folder / "tokenizer_config.json");
  if (!config.ok()) return config.status();
  auto map = read_json(folder / "special_tokens_map.json");
  if (!map.ok()) return map.status();
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    auto text = token_text(*config, key);
    if (!text && json_member(*config, key) == nullptr) text = token_text(*map, key);
    if (text) pipeline.special_token_texts[key] = *text;
  }
  const auto id_of = [&](const char* key) -> std::optional<std::int32_t> {
    auto text = pipeline.special_token_texts.find(key);
    return text == pipeline.special_token_texts.end() ? std::nullopt : pipeline.find(text->second);
  };
  pipeline.bos_id = id_of("bos_token");
  pipeline.eos_id = id_of("eos_token");
  pipeline.pad_id = id_of("pad_token");
  return add_chat_template(folder, *config, pipeline);
}

}  // namespace rl
