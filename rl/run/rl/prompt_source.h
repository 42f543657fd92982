// PromptSource: the interface that gives a step its prompts.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "rl/feed/prompt_feed.h"
#include "runtime/core/result.h"

namespace rl {

class PromptSource {
 public:
  virtual ~PromptSource() = default;
  /// The prompts of `step`, or of one more `round` of generation for it.
  virtual runtime::Result<StepPrompts> next(std::int64_t step, std::int64_t round) = 0;
  /// The position in the data behind the prompts that next() gave.
  virtual nlohmann::json position() const = 0;
};

/// The next rows of the data.
class FeedPrompts : public PromptSource {
 public:
  explicit FeedPrompts(PromptFeed& feed) : feed_(feed) {}

  runtime::Result<StepPrompts> next(std::int64_t step, std::int64_t round) override {
    return feed_.next(step, round);
  }
  nlohmann::json position() const override { return feed_.position(); }

 private:
  PromptFeed& feed_;
};

/// The rows that `chosen` names; where it names none, the next ones.
class ChosenPrompts : public PromptSource {
 public:
  using Chosen = std::function<std::vector<std::int64_t>()>;

  ChosenPrompts(PromptFeed& feed, Chosen chosen) : feed_(feed), chosen_(std::move(chosen)) {}

  runtime::Result<StepPrompts> next(std::int64_t step, std::int64_t round) override {
    const std::vector<std::int64_t> rows = chosen_();
    return rows.empty() ? feed_.next(step, round) : feed_.of_rows(rows, step);
  }
  nlohmann::json position() const override { return feed_.position(); }

 private:
  PromptFeed& feed_;
  Chosen chosen_;
};

}  // namespace rl
