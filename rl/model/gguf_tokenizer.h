// The tokenizer inside a GGUF file as Hugging Face's tokenizer.json and tokenizer_config.json.
#pragma once

#include <nlohmann/json.hpp>

#include "runtime/core/result.h"

namespace rl {

class GgufFile;

struct GgufTokenizer {
  nlohmann::ordered_json tokenizer;  // tokenizer.json
  nlohmann::ordered_json config;     // tokenizer_config.json, with the chat template
};

/// Byte-level BPE vocabularies (`tokenizer.ggml.model` "gpt2") with the splits gpt-2, smollm and
/// llama-bpe. kUnimplemented names any other model or split. kInvalidArgument: keys missing or of
/// the wrong type, lists of different lengths, a merge that is no pair, tokens that are not UTF-8.
runtime::Result<GgufTokenizer> read_gguf_tokenizer(const GgufFile& file);

}  // namespace rl
