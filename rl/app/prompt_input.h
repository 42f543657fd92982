// Prompts as people give them to `starling generate`: on the command line or as JSON lines.
#pragma once

#include <cstdint>
#include <istream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// One prompt: token ids, plain text, or chat messages for the model's template.
struct PromptInput {
  std::variant<std::vector<std::int32_t>, std::string, nlohmann::ordered_json> prompt;
  std::string where;                       // "--prompt" or "stdin:3", for messages
  nlohmann::ordered_json tools = nullptr;  // of a row, for the template: a list, or null

  bool is_ids() const { return prompt.index() == 0; }
  bool is_chat() const { return prompt.index() == 2; }
};

/// A conversation of one user message.
nlohmann::ordered_json single_message(std::string_view text);

/// "1,2,3", or the same as JSON: "[1, 2, 3]". kInvalidArgument: anything that is not a list of
/// token ids.
runtime::Result<std::vector<std::int32_t>> parse_ids(std::string_view text);

/// The list of token ids in a JSON value. kInvalidArgument: not such a list; `where` begins the
/// message.
runtime::Result<std::vector<std::int32_t>> json_ids(const nlohmann::ordered_json& value,
                                                    const std::string& where);

/// A row {"prompt": text}, {"chat": text}, {"messages": [...]} or {"ids": [...]}, and its "tools";
/// further keys are ignored. `where` names it in messages.
runtime::Result<PromptInput> parse_prompt_row(std::string_view line, const std::string& where);

/// All rows of a stream; blank lines are skipped. Errors name the line ("stdin:3").
runtime::Result<std::vector<PromptInput>> read_prompt_rows(std::istream& in,
                                                           const std::string& name);

}  // namespace rl
