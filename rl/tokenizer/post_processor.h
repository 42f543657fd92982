// Post-processors: the tokens that go before and after those of a text (begin and end of sequence).
#pragma once

#include <cstdint>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/core/result.h"

namespace rl {

struct PostProcessor {
  std::vector<std::int32_t> prefix;
  std::vector<std::int32_t> suffix;
  bool trim_offsets = false;      // what a token stands for loses the white space at its ends,
  bool add_prefix_space = false;  // but for one in front of the text, which is not of the text
};

/// Reads the "post_processor" of a tokenizer.json: TemplateProcessing, ByteLevel, BertProcessing,
/// RobertaProcessing, Sequence. kUnimplemented names any other; kInvalidArgument a template without
/// exactly one sequence.
runtime::Result<PostProcessor> post_processor_from_json(const nlohmann::json& json, int depth = 0);

}  // namespace rl
