// Post-processors: the tokens that go before and after those of a text (begin and end of sequence).
#pragma once

#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/core/result.h"

namespace rl {

struct PostProcessor {
  std::vector<std::int32_t> prefix;
  std::vector<std::int32_t> suffix;
};

/// Reads the "post_processor" of a tokenizer.json: TemplateProcessing, ByteLevel (which concerns offsets only), BertProcessing,
/// RobertaProcessing, Sequence. kUnimplemented names any other; kInvalidArgument a template without exactly one sequence.
runtime::Result<PostProcessor> post_processor_from_json(const nlohmann::json& json, int depth = 0);

}  // namespace rl
