// Chat templates in a GGUF file.
#pragma once

#include <map>
#include <string>

#include "rl/weights/gguf.h"
#include "runtime/core/result.h"

namespace rl {

/// Name to source: tokenizer.chat_template, and those that tokenizer.chat_templates names. Errors
/// name the key.
runtime::Result<std::map<std::string, std::string>> gguf_chat_templates(const GgufFile& file);

}  // namespace rl
