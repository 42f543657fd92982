#include "rl/app/prompt_input.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "rl/data/tool_list.h"
#include "runtime/core/json.h"

namespace rl {

nlohmann::ordered_json single_message(std::string_view text) {
  return nlohmann::ordered_json::array({{{"role", "user"}, {"content", text}}});
}

runtime::Result<std::vector<std::int32_t>> parse_ids(std::string_view text) {
  std::vector<std::int32_t> ids;
  const bool listed = text.size() >= 2 && text.front() == '[' && text.back() == ']';  // as in JSON
  const char* at = text.data() + (listed ? 1 : 0);
  const char* const end = text.data() + text.size() - (listed ? 1 : 0);
  const auto skip_spaces = [&] { at = std::find_if(at, end, [](char c) { return c != ' '; }); };
  for (skip_spaces(); at < end; skip_spaces()) {
    std::int32_t id = 0;
    const auto [after, error] = std::from_chars(at, end, id);
    at = after;
    skip_spaces();
    const bool more = at < end && *at == ',';
    if (error != std::errc() || id < 0 || (at < end && !more) || (more && at + 1 == end)) {
      return runtime::invalid_argument("'" + std::string(text) +
                                       "' is not a list of token ids such as 1,2,3");
    }
    ids.push_back(id);
    if (more) ++at;
  }
  return ids;
}

runtime::Result<std::vector<std::int32_t>> json_ids(const nlohmann::ordered_json& value,
                                                    const std::string& where) {
  const auto bad = [&] {
    return runtime::invalid_argument(where + ": \"ids\" must be a list of token ids");
  };
  if (!value.is_array()) return bad();
  std::vector<std::int32_t> ids;
  for (const nlohmann::ordered_json& id : value) {
    if (!id.is_number_integer() || id < 0 || id > std::numeric_limits<std::int32_t>::max())
      return bad();
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

namespace {

/// What of a row is the prompt.
runtime::Result<PromptInput> parse_prompt(const nlohmann::ordered_json& row,
                                          const std::string& where) {
  if (const auto ids = row.find("ids"); ids != row.end()) {
    auto parsed = json_ids(*ids, where);
    if (!parsed.ok()) return parsed.status();
    return PromptInput{.prompt = std::move(*parsed), .where = where};
  }
  if (const auto messages = row.find("messages"); messages != row.end()) {
    if (!messages->is_array())
      return runtime::invalid_argument(where + ": \"messages\" must be a list of messages");
    return PromptInput{.prompt = *messages, .where = where};
  }
  if (const auto chat = row.find("chat"); chat != row.end()) {
    if (chat->is_array()) return PromptInput{.prompt = *chat, .where = where};
    if (!chat->is_string())
      return runtime::invalid_argument(where + ": \"chat\" must be a text or a list of messages");
    return PromptInput{.prompt = single_message(chat->get_ref<const std::string&>()),
                       .where = where};
  }
  if (const auto prompt = row.find("prompt"); prompt != row.end()) {
    if (!prompt->is_string())
      return runtime::invalid_argument(
          where + ": \"prompt\" must be a text; use \"messages\" for a conversation");
    return PromptInput{.prompt = prompt->get<std::string>(), .where = where};
  }
  return runtime::invalid_argument(where + ": no \"prompt\", \"chat\", \"messages\" or \"ids\"");
}

}  // namespace

runtime::Result<PromptInput> parse_prompt_row(std::string_view line, const std::string& where) {
  const auto row = runtime::parse_json<nlohmann::ordered_json>(line);
  if (row.is_discarded() || !row.is_object())
    return runtime::invalid_argument(where + ": not a JSON object");
  runtime::Result<PromptInput> input = parse_prompt(row, where);
  const auto written = row.find("tools");
  if (!input.ok() || written == row.end()) return input;
  runtime::Result<nlohmann::ordered_json> tools = read_tool_list(*written, where + ": \"tools\"");
  if (!tools.ok()) return tools.status();
  input->tools = std::move(*tools);
  return input;
}

runtime::Result<std::vector<PromptInput>> read_prompt_rows(std::istream& in,
                                                           const std::string& name) {
  std::vector<PromptInput> prompts;
  std::string line;
  for (std::int64_t number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto prompt = parse_prompt_row(line, name + ":" + std::to_string(number));
    if (!prompt.ok()) return prompt.status();
    prompts.push_back(std::move(*prompt));
  }
  return prompts;
}

}  // namespace rl
