// SequenceOptions: options for making a sequence of tokens of a row of a stage's data.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "rl/config/config.h"
#include "rl/data/prompt_builder.h"
#include "runtime/core/result.h"

namespace rl {

struct SequenceOptions {
  std::int64_t tokens_max = 1024;              // of a prompt with a response, or a conversation
  Truncation truncation = Truncation::kError;  // kError, kLeft, kRight
  std::string chat_template;                   // overrides the model's own when not empty
  nlohmann::ordered_json template_variables =
      nlohmann::ordered_json::object();  // `data.apply_chat_template_kwargs`

  /// From `data.*` and `model.custom_chat_template`. kInvalidArgument: a truncation that there is
  /// not.
  static runtime::Result<SequenceOptions> from_config(const Config& config);
};

}  // namespace rl
