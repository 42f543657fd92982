// ToolHost: tools and users that are Python classes, in their own processes. One that hangs,
// crashes or answers nonsense costs a call its answer, and nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rl/agent/agent_options.h"
#include "rl/agent/tool_call.h"
#include "rl/reward/process_pool.h"
#include "runtime/core/result.h"

namespace rl {

/// What a call came to.
struct ToolAnswer {
  std::size_t call = 0;
  std::string text;              // what the model is told; of a failure, what verl would tell it
  std::optional<double> reward;  // what the tool or the user thinks of it
  bool done = false;             // a user has nothing more to say
  ScoreFailure failure = ScoreFailure::kNone;
};

/// What a conversation has that its tools and users are told.
struct ConversationState {
  std::string id;
  nlohmann::ordered_json messages;            // so far
  nlohmann::ordered_json tools_kwargs;        // of the row: {tool: {"create_kwargs": {...}}}
  nlohmann::ordered_json interaction_kwargs;  // of the row: {"name": ..., ...}
};

/// A resource; one thread at a time.
class ToolHost {
 public:
  /// Loads the classes that the files of `options` name, once. kNotFound: no such file;
  /// kInvalidArgument: what is wrong with it, or what Python says; kUnavailable: no Python.
  static runtime::Result<std::unique_ptr<ToolHost>> create(const AgentOptions& options);

  /// The tools, as templates show them to a model: a list of {"type": "function", "function":
  /// {"name", ...}}.
  const nlohmann::ordered_json& schemas() const { return schemas_; }
  bool has_interactions() const { return !interactions_.empty(); }

  /// A call of a tool that schemas() has. Returns its number. Answers come from take(), in the
  /// order in which they are there.
  std::size_t call(const ToolCall& call, const ConversationState& state);
  /// What the user says next. kInvalidArgument: the row names no interaction that there is.
  runtime::Result<std::size_t> ask(const ConversationState& state);

  /// Waits for answers, at most `wait_max`, where there are calls. Failures: no process can be
  /// started any more.
  runtime::Status work(std::chrono::milliseconds wait_max) { return pool_->work(wait_max); }
  std::vector<ToolAnswer> take();
  std::size_t open() const { return pool_->open(); }

 private:
  ToolHost() = default;
  void log_first(const std::string& what, const nlohmann::json& message);

  std::unique_ptr<ProcessPool> pool_;
  nlohmann::ordered_json schemas_ = nlohmann::ordered_json::array();
  std::vector<std::string> interactions_;
  std::vector<std::string> names_;  // of the tools called, by call
  std::int64_t logged_ = 0;         // failures that the log has seen
};

/// ToolHost::schemas(), for who only writes prompts. Errors: those of ToolHost::create.
runtime::Result<nlohmann::ordered_json> tool_schemas(const AgentOptions& options);

/// The names of tools in a list of schemas.
std::vector<std::string> tool_names(const nlohmann::ordered_json& schemas);

}  // namespace rl
