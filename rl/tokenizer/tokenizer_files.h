// The sources of tokenizers: a model folder, a tokenizer.json, a GGUF file. Internal to
// rl/tokenizer; Tokenizer::load is the API.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "rl/tokenizer/pipeline.h"
#include "rl/tokenizer/vocabulary_files.h"
#include "rl/weights/gguf.h"
#include "runtime/core/result.h"
#include "runtime/core/status.h"

namespace rl {

/// See Tokenizer::load.
runtime::Result<std::unique_ptr<TokenizerPipeline>> load_tokenizer_pipeline(
    const std::filesystem::path& model);

/// A tokenizer.json in memory; `name` is for error messages.
runtime::Result<std::unique_ptr<TokenizerPipeline>> tokenizer_pipeline_from_json(
    std::string_view json, std::string_view name);

/// A folder with vocab.json and merges.txt, of the classes GPT2Tokenizer (GPT-2, OPT) and
/// Qwen2Tokenizer. Tokens, begin and end are as transformers takes them from the files next to it.
/// Errors name the file; kUnimplemented another class.
runtime::Result<std::unique_ptr<TokenizerPipeline>> tokenizer_pipeline_from_vocab_and_merges(
    const std::filesystem::path& folder);

/// A SentencePiece model (unigram or BPE) in memory; `name` is for error messages, `folder` (may be
/// empty) holds the files next to it. Tokenizes as the sentencepiece library does. With a
/// tokenizer_config.json in the folder control symbols are found in a text and begin and end added
/// as transformers does. With "legacy": false only the beginning of a text gets a space. Errors
/// name the field; kUnimplemented a class or a kind of model that would need more.
runtime::Result<std::unique_ptr<TokenizerPipeline>> tokenizer_pipeline_from_sentencepiece(
    std::string_view bytes, std::string_view name, const std::filesystem::path& folder);

/// The vocabulary in a GGUF file's metadata (tokenizer.ggml.*): kinds "gpt2" (byte-level BPE with
/// merges) and "llama" (SentencePiece BPE with scores). Errors name the key; kUnimplemented other
/// kinds and unknown pre-tokenizers.
runtime::Result<std::unique_ptr<TokenizerPipeline>> tokenizer_pipeline_from_gguf(
    const GgufFile& file);

/// Adds what lies next to a vocabulary: special tokens from `files`, the chat templates from
/// chat_template.jinja and additional_chat_templates, tokenizer_config.json or chat_template.json.
/// All of them may be missing. Errors name the file. An empty folder has none.
runtime::Status add_tokenizer_config(const std::filesystem::path& folder,
                                     const SlowTokenizerFiles& files, TokenizerPipeline& pipeline);

}  // namespace rl
