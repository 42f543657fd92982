#include "rl/agent/tool_call.h"

#include <algorithm>
#include <array>
#include <optional>

#include "runtime/core/json.h"

namespace rl {
namespace {

constexpr std::string_view kBegin = "<tool_call>";
constexpr std::string_view kEnd = "</tool_call>";

std::optional<ToolCall> read_call(std::string_view text) {
  const nlohmann::ordered_json call = runtime::parse_json<nlohmann::ordered_json>(text);
  if (!call.is_object()) return std::nullopt;
  const auto name = call.find("name");
  const auto arguments = call.find("arguments");
  if (name == call.end() || !name->is_string() || arguments == call.end()) return std::nullopt;
  return ToolCall{name->get<std::string>(), *arguments};
}

}  // namespace

runtime::Result<ToolFormat> parse_tool_format(std::string_view name) {
  if (name == "hermes") return ToolFormat::kHermes;
  constexpr std::array<std::string_view, 8> kVerls = {
      "deepseek_v4", "gemma4", "glm", "gpt-oss", "kimi", "minimax", "qwen3_coder", "seed"};
  if (std::find(kVerls.begin(), kVerls.end(), name) != kVerls.end()) {
    return runtime::unimplemented(
        "the calls of \"" + std::string(name) +
        "\" are not read here yet: there is hermes, which Qwen2.5, Qwen3 and Hermes models write");
  }
  return runtime::invalid_argument("there is hermes, not \"" + std::string(name) + "\"");
}

AssistantTurn read_turn(ToolFormat, std::string_view text) {
  AssistantTurn turn;
  std::size_t rest = 0;
  for (std::size_t begin = text.find(kBegin); begin != text.npos; begin = text.find(kBegin, rest)) {
    const std::size_t inside = begin + kBegin.size();
    const std::size_t end = text.find(kEnd, inside);
    if (end == text.npos) break;
    turn.content += text.substr(rest, begin - rest);
    rest = end + kEnd.size();
    if (std::optional<ToolCall> call = read_call(text.substr(inside, end - inside))) {
      turn.calls.push_back(std::move(*call));
    } else {
      ++turn.unreadable;
    }
  }
  turn.content += text.substr(rest);
  return turn;
}

}  // namespace rl
