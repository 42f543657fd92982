// Sources of turns, and the conversations that use them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rl/batch/rollout_batch.h"
#include "rl/rollout/request.h"
#include "runtime/core/result.h"

namespace rl {

class Engine;

/// A source of turns: an Engine, request by request.
class TurnSource {
 public:
  virtual ~TurnSource() = default;
  virtual RequestId submit(Request request) = 0;
  virtual runtime::Status step() = 0;
  virtual std::vector<Completion> take_finished() = 0;
  virtual bool idle() const = 0;
};

/// Borrows the engine.
class EngineTurns : public TurnSource {
 public:
  explicit EngineTurns(Engine& engine) : engine_(engine) {}
  RequestId submit(Request request) override;
  runtime::Status step() override;
  std::vector<Completion> take_finished() override;
  bool idle() const override;

 private:
  Engine& engine_;
};

/// Turns of one conversation, and conversations, draw unrelated numbers.
std::uint64_t turn_seed(std::uint64_t prompt, std::int64_t sample, std::int64_t turn);

/// What makes samples that are conversations. A resource; one thread at a time.
class Conversations {
 public:
  virtual ~Conversations() = default;

  /// `like.n` conversations for each prompt; `like.sampling` is for each turn, and its
  /// max_new_tokens is for all turns of a conversation and what stands between them. Seeds are the
  /// prompts'.
  virtual runtime::Result<RolloutBatch> run(TurnSource& source, const PromptBatch& prompts,
                                            const Request& like) = 0;

  /// What became of calls since this was asked last.
  virtual std::map<std::string, double> take_metrics() = 0;
};

}  // namespace rl
