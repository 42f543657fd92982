// The small files next to a tokenizer.json.
#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "rl/template/chat_templates.h"
#include "rl/tokenizer/json_fields.h"
#include "rl/tokenizer/small_files.h"
#include "rl/tokenizer/special_tokens.h"
#include "rl/tokenizer/tokenizer_files.h"
#include "rl/tokenizer/unicode_text.h"

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;
namespace fs = std::filesystem;

namespace {

using Templates = std::map<std::string, std::string>;

// The member "chat_template": a string, a list of named ones, or an object of them.
Result<Templates> config_templates(const json& config) {
  const json* member = json_member(config, "chat_template");
  Templates templates;
  if (member == nullptr) return templates;
  if (member->is_string()) {
    if (!member->get_ref<const std::string&>().empty())
      templates[kDefaultTemplate] = member->get<std::string>();
    return templates;
  }
  const Status wrong = runtime::invalid_argument(
      "chat_template is neither a string nor a list of {\"name\", \"template\"}");
  if (member->is_object()) {
    for (const auto& [name, text] : member->items()) {
      if (!text.is_string()) return wrong;
      templates[name] = text.get<std::string>();
    }
    return templates;
  }
  if (!member->is_array()) return wrong;
  for (const json& entry : *member) {
    auto name = json_string(entry, "name");
    auto text = json_string(entry, "template");
    if (!name.ok() || !text.ok()) return wrong;
    templates[std::string(*name)] = std::string(*text);
  }
  return templates;
}

Status take_template_file(const fs::path& path, const std::string& name, Templates& templates) {
  auto text = read_optional_text(path);
  if (!text.ok()) return text.status();
  if (!*text) return {};
  if (invalid_utf8_at(**text)) return runtime::invalid_argument(path.string() + ": not UTF-8");
  templates[name] = std::move(**text);
  return {};
}

// chat_template.jinja, and additional_chat_templates/NAME.jinja.
Result<Templates> template_files(const fs::path& folder) {
  Templates templates;
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder / kTemplateFolder, ignored)) {
    if (entry.path().extension() == ".jinja") files.push_back(entry.path());
  }
  for (const fs::path& file : files) {
    Status status = take_template_file(file, file.stem().string(), templates);
    if (!status.ok()) return status;
  }
  Status status = take_template_file(folder / "chat_template.jinja", kDefaultTemplate, templates);
  if (!status.ok()) return status;
  return templates;
}

// Separate files go before what the configs say. transformers then drops the configs'
// templates of other names as well; here a default one stays.
Result<Templates> read_templates(const fs::path& folder, const json& config) {
  auto templates = template_files(folder);
  if (!templates.ok() || templates->contains(kDefaultTemplate)) return templates;
  auto said = config_templates(config);
  if (!said.ok()) return said.status().with_context((folder / "tokenizer_config.json").string());
  if (said->empty()) {
    const fs::path path = folder / "chat_template.json";
    auto separate = read_optional_json(path);
    if (!separate.ok()) return separate.status();
    said = config_templates(*separate);
    if (!said.ok()) return said.status().with_context(path.string());
  }
  templates->merge(*said);
  return templates;
}

}  // namespace

Status add_tokenizer_config(const fs::path& folder, const SlowTokenizerFiles& files,
                            TokenizerPipeline& pipeline) {
  auto named = named_special_tokens(files, {});
  if (!named.ok()) return named.status().with_context((folder / "tokenizer_config.json").string());
  for (const NamedSpecialToken& one : *named)
    pipeline.special_token_texts[one.name] = one.token.content;
  const auto id_of = [&](const char* key) -> std::optional<std::int32_t> {
    auto text = pipeline.special_token_texts.find(key);
    return text == pipeline.special_token_texts.end() ? std::nullopt : pipeline.find(text->second);
  };
  pipeline.bos_id = id_of("bos_token");
  pipeline.eos_id = id_of("eos_token");
  pipeline.pad_id = id_of("pad_token");
  if (folder.empty()) return {};
  auto templates = read_templates(folder, files.config);
  if (!templates.ok()) return templates.status();
  pipeline.chat_templates = std::move(*templates);
  return {};
}

}  // namespace rl
