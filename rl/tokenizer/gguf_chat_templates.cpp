#include "rl/tokenizer/gguf_chat_templates.h"

#include "rl/template/chat_templates.h"
#include "rl/tokenizer/unicode_text.h"

namespace rl {

using runtime::Result;

Result<std::map<std::string, std::string>> gguf_chat_templates(const GgufFile& file) {
  const std::string key = "tokenizer.chat_template";
  std::map<std::string, std::string> keys;  // of the template by its name
  if (file.metadata(key) != nullptr) keys[kDefaultTemplate] = key;
  if (file.metadata("tokenizer.chat_templates") != nullptr) {
    auto names = file.strings("tokenizer.chat_templates");
    if (!names.ok()) return names.status();
    for (std::string_view name : *names)
      keys.try_emplace(std::string(name), key + "." + std::string(name));
  }
  std::map<std::string, std::string> templates;
  for (const auto& [name, of] : keys) {
    auto text = file.string(of);
    if (!text.ok()) return text.status();
    if (invalid_utf8_at(*text))
      return runtime::invalid_argument(file.name() + ": " + of + " is not UTF-8");
    if (!text->empty()) templates[name] = *text;
  }
  return templates;
}

}  // namespace rl
