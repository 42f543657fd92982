// AgentLoop: samples that are conversations. A turn of the model, what its tools or a user answer,
// and the next turn, until it has nothing more to ask.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rl/agent/agent_options.h"
#include "rl/agent/tool_host.h"
#include "rl/agent/turn_source.h"
#include "rl/agent/turn_text.h"
#include "runtime/core/result.h"

namespace rl {

/// A resource; one thread at a time. Conversations do not wait for each other. While tools work for
/// one, the engine goes on with the others. A conversation's samples depend on its prompt, its seed
/// and what its tools answer alone.
class AgentLoop : public Conversations {
 public:
  /// Errors: those of ToolHost::create.
  static runtime::Result<std::unique_ptr<AgentLoop>> create(const AgentOptions& options,
                                                            TurnText text);

  /// kInvalidArgument: a prompt that cannot be served, a template that has no several turns, a row
  /// that names no interaction, selected_tools()'s.
  runtime::Result<RolloutBatch> run(TurnSource& source, const PromptBatch& prompts,
                                    const Request& like) override;

  /// tool/... and interaction/....
  std::map<std::string, double> take_metrics() override;

 private:
  struct Conversation;
  struct Run;

  AgentLoop(const AgentOptions& options, TurnText text, std::unique_ptr<ToolHost> host)
      : options_(options), text_(std::move(text)), host_(std::move(host)) {}
  /// Asks for the first turn of every sample.
  runtime::Status begin(Run& run);
  /// One step of the engine, and what tools have answered by then.
  runtime::Status advance(Run& run);
  static RolloutBatch batch_of(const Run& run);
  runtime::Status take_turn(Run& run, Conversation& conversation, const Completion& turn);
  runtime::Status ask(Run& run, Conversation& conversation, const AssistantTurn& turn);
  runtime::Status take_answer(Run& run, const ToolAnswer& answer);
  runtime::Status go_on(Run& run, Conversation& conversation,
                        const nlohmann::ordered_json& messages);
  void count(const char* name, std::int64_t by = 1) { counts_[name] += static_cast<double>(by); }

  AgentOptions options_;
  TurnText text_;
  std::unique_ptr<ToolHost> host_;
  std::map<std::string, double> counts_;
};

}  // namespace rl
