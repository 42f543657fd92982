#include "rl/agent/tool_host.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "rl/agent/python_programs.h"
#include "rl/config/yaml.h"
#include "rl/reward/python_programs.h"
#include "runtime/core/environment.h"
#include "runtime/core/json.h"
#include "runtime/core/log.h"

namespace rl {

using nlohmann::json;
using nlohmann::ordered_json;
using runtime::Result;
using runtime::Status;

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kToolToldMax = 10;

// The list `key` of a file; empty without one.
Result<ordered_json> read_list(const fs::path& file, const char* option, const char* key) {
  if (file.empty()) return ordered_json(ordered_json::array());
  const auto failure = [&](const std::string& why) {
    return runtime::invalid_argument("actor_rollout_ref.rollout.multi_turn." + std::string(option) +
                                     ": " + file.string() + ": " + why);
  };
  const Result<std::vector<YamlEntry>> entries = read_yaml_file(file);
  if (!entries.ok())
    return entries.status().with_context(std::string("actor_rollout_ref.rollout.multi_turn.") +
                                         option);
  const auto found = std::find_if(entries->begin(), entries->end(),
                                  [&](const YamlEntry& entry) { return entry.key == key; });
  if (found == entries->end() || !found->value.is_array())
    return failure("it has no list '" + std::string(key) + "'");
  for (const ordered_json& entry : found->value) {
    if (!entry.is_object() || !entry.contains("class_name") || !entry["class_name"].is_string())
      return failure("an entry of '" + std::string(key) + "' has no class_name");
    if (std::string(key) == "interaction" &&
        (!entry.contains("name") || !entry["name"].is_string()))
      return failure("an interaction has no name");
    const auto config = entry.find("config");
    const std::string type =
        config != entry.end() && config->is_object() ? config->value("type", "native") : "native";
    if (type != "native")
      return failure("config.type is " + type +
                     ", and there are native tools, which are Python classes");
  }
  return found->value;
}

// Text in a message, so that dictionaries keep their order.
json as_message(const ordered_json& request) {
  return {{"request", request.dump(-1, ' ', false, json::error_handler_t::replace)}};
}

std::string folder_of(const fs::path& file) {
  std::error_code error;
  return fs::absolute(file, error).parent_path().string();
}

}  // namespace

std::vector<std::string> tool_names(const ordered_json& schemas) {
  std::vector<std::string> names;
  for (const ordered_json& schema : schemas)
    names.push_back(schema.value(ordered_json::json_pointer("/function/name"), std::string()));
  return names;
}

Result<ordered_json> tool_schemas(const AgentOptions& options) {
  if (options.tools.empty()) return ordered_json(ordered_json::array());
  const Result<std::unique_ptr<ToolHost>> host = ToolHost::create(options);
  if (!host.ok()) return host.status();
  return (*host)->schemas();
}

Result<std::unique_ptr<ToolHost>> ToolHost::create(const AgentOptions& options) {
  const Result<ordered_json> tools = read_list(options.tools, "tool_config_path", "tools");
  if (!tools.ok()) return tools.status();
  const Result<ordered_json> interactions =
      read_list(options.interactions, "interaction_config_path", "interaction");
  if (!interactions.ok()) return interactions.status();
  std::unique_ptr<ToolHost> host(new ToolHost);
  for (const ordered_json& interaction : *interactions)
    host->interactions_.push_back(interaction["name"]);
  ordered_json folders = ordered_json::array();
  for (const fs::path& file : {options.tools, options.interactions}) {
    if (!file.empty()) folders.push_back(folder_of(file));
  }
  const char* interpreter = runtime::environment_variable("STARLING_PYTHON");
  ProcessPoolOptions pool;
  pool.command = {interpreter != nullptr && *interpreter != 0 ? interpreter : "python3", "-c",
                  std::string(kPythonServer) + kToolModules + kToolProgram};
  pool.setup = {{"tools", *tools},
                {"interactions", *interactions},
                {"folders", folders},
                {"memory_bytes", options.memory_bytes}};
  pool.name = "tools";
  pool.workers_max = static_cast<std::size_t>(options.workers_max);
  pool.timeout = options.timeout;
  pool.copies = true;
  pool.retries = 0;  // a call may have had an effect
  pool.overtake = false;
  Result<std::unique_ptr<ProcessPool>> started = ProcessPool::create(std::move(pool));
  if (!started.ok()) return started.status().with_context("tools");
  host->pool_ = std::move(*started);
  ScoreCounts counts;
  const Result<std::vector<PoolAnswer>> answer =
      host->pool_->run({as_message({{"kind", "schemas"}})}, counts);
  if (!answer.ok()) return answer.status().with_context("tools");
  const json& message = answer->front().message;
  if (answer->front().failure != ScoreFailure::kNone || !message.contains("schemas") ||
      !message["schemas"].is_string())
    return runtime::invalid_argument("tools: their schemas cannot be read: " + answer->front().why);
  host->schemas_ = runtime::parse_json<ordered_json>(message["schemas"].get<std::string>());
  return host;
}

std::size_t ToolHost::call(const ToolCall& call, const ConversationState& state) {
  const ordered_json own = state.tools_kwargs.is_object()
                               ? state.tools_kwargs.value(call.name, ordered_json::object())
                               : ordered_json::object();
  const ordered_json request = {
      {"kind", "tool"},
      {"id", state.id},
      {"name", call.name},
      {"arguments", call.arguments},
      {"create_kwargs", own.is_object() ? own.value("create_kwargs", ordered_json::object())
                                        : ordered_json::object()},
      {"tools_kwargs",
       state.tools_kwargs.is_object() ? state.tools_kwargs : ordered_json::object()},
      {"messages", state.messages}};
  const std::size_t number = pool_->submit(as_message(request));
  names_.resize(std::max(names_.size(), number + 1));
  names_[number] = call.name;
  return number;
}

Result<std::size_t> ToolHost::ask(const ConversationState& state) {
  const ordered_json kwargs =
      state.interaction_kwargs.is_object() ? state.interaction_kwargs : ordered_json::object();
  const std::string name = kwargs.contains("name") && kwargs["name"].is_string()
                               ? kwargs["name"].get<std::string>()
                           : interactions_.size() == 1 ? interactions_.front()
                                                       : "";
  if (std::find(interactions_.begin(), interactions_.end(), name) == interactions_.end()) {
    std::string known;
    for (const std::string& one : interactions_) known += (known.empty() ? "" : ", ") + one;
    return runtime::invalid_argument("extra_info.interaction_kwargs.name is '" + name +
                                     "', and interaction_config_path has " + known);
  }
  const std::size_t number = pool_->submit(as_message({{"kind", "user"},
                                                       {"id", state.id},
                                                       {"name", name},
                                                       {"messages", state.messages},
                                                       {"kwargs", kwargs}}));
  names_.resize(std::max(names_.size(), number + 1));
  names_[number] = name;
  return number;
}

std::vector<ToolAnswer> ToolHost::take() {
  std::vector<ToolAnswer> answers;
  for (auto& [call, answer] : pool_->take_finished()) {
    ToolAnswer& taken = answers.emplace_back();
    taken.call = call;
    taken.failure = answer.failure;
    std::string why = answer.why;
    const json& message = answer.message;
    if (taken.failure == ScoreFailure::kNone && message.contains("failed")) {
      taken.failure = ScoreFailure::kError;
      why = message.value("failed", std::string());
    } else if (taken.failure == ScoreFailure::kNone &&
               (!message.contains("text") || !message["text"].is_string())) {
      taken.failure = ScoreFailure::kInvalid;
      why = "it gave no text";
    }
    if (taken.failure != ScoreFailure::kNone) {
      taken.text = "Error executing tool '" + names_[call] + "': " + why;
      log_first(taken.text, message);
      continue;
    }
    taken.text = message["text"].get<std::string>();
    taken.done = message.value("done", false);
    if (message.contains("reward") && message["reward"].is_number())
      taken.reward = message["reward"].get<double>();
  }
  return answers;
}

// The first few; the rest are numbers in the metrics.
void ToolHost::log_first(const std::string& what, const json& message) {
  if (++logged_ > kToolToldMax) return;
  const std::string trace =
      message.is_object() ? message.value("traceback", std::string()) : std::string();
  LOG(warn, "{}{}{}", what, trace.empty() ? "" : "\n", trace);
}

}  // namespace rl
