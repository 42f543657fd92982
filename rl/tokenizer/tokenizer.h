// Tokenizer: text to ids and back, exactly as in the model's training. Loads Hugging Face's
// tokenizer.json and GGUF vocabularies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rl/tokenizer/encoding.h"
#include "runtime/core/result.h"

namespace rl {

struct TokenizerPipeline;  // the loaded parts; see pipeline.h

/// A loaded tokenizer. A value: copies share the same immutable tables. All methods are safe to
/// call from several threads at once.
class Tokenizer {
 public:
  /// Loads a model folder (with tokenizer.json; tokenizer_config.json and chat_template.jinja next
  /// to it are used), a tokenizer.json itself, or a .gguf file. Errors name the file and the
  /// component: kNotFound, kInvalidArgument (damaged), kUnimplemented (an unknown component: text
  /// is never tokenized wrongly).
  static runtime::Result<Tokenizer> load(const std::filesystem::path& model);

  /// As load(), from the content of a tokenizer.json. `name` is for error messages.
  static runtime::Result<Tokenizer> from_json(std::string_view json, std::string_view name);

  /// Ids of `text`. With `add_special_tokens`, begin and end tokens are added as the model's
  /// post-processor defines; added tokens that occur in the text are recognised in any case. The
  /// truncation and padding in the file are ignored: the caller chooses lengths. Errors:
  /// kInvalidArgument (not UTF-8, with the byte offset).
  runtime::Result<std::vector<std::int32_t>> encode(std::string_view text,
                                                    bool add_special_tokens) const;

  /// The ids with offsets if requested, truncated to a number of tokens if requested.
  /// Errors: as encode(); kInvalidArgument (the added special tokens alone exceed the
  /// limit).
  runtime::Result<Encoding> encode_with(std::string_view text, const EncodeOptions& options) const;

  /// Many texts at once, on up to `threads` threads (0: one per processor), then padded with
  /// padding_id() as `padding` says. Errors name the text; kInvalidArgument: padding for a
  /// tokenizer that has no padding_id().
  runtime::Result<std::vector<Encoding>> encode_batch(std::span<const std::string_view> texts,
                                                      const EncodeOptions& options,
                                                      const Padding& padding = {},
                                                      std::size_t threads = 1) const;

  /// Text of `ids`. Unknown ids are left out; bytes that are not UTF-8 become U+FFFD.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const;

  /// As decode, but an id outside the vocabulary is kInvalidArgument.
  runtime::Result<std::string> decode_checked(std::span<const std::int32_t> ids,
                                              bool skip_special_tokens) const;

  /// The tokenization model: "BPE", "Unigram", "WordPiece" or "WordLevel".
  std::string_view kind() const;

  /// One more than the largest id, added tokens included.
  std::int32_t vocab_size() const;
  std::optional<std::int32_t> token_to_id(std::string_view token) const;
  std::string id_to_token(std::int32_t id) const;  // empty for an unknown id
  bool is_special(std::int32_t id) const;

  std::optional<std::int32_t> bos_id() const;
  std::optional<std::int32_t> eos_id() const;
  std::optional<std::int32_t> pad_id() const;

  /// The id that pads the shorter rows of a batch, where the attention mask is 0. It is the model's
  /// padding token, else its end-of-sequence token (which is logged once).
  std::optional<std::int32_t> padding_id() const;

  /// Chat templates by name, as Jinja source; empty if the model has none (from chat_template.jinja
  /// and additional_chat_templates, tokenizer_config.json or the GGUF metadata). See ChatTemplates.
  const std::map<std::string, std::string>& chat_templates() const;

  /// The template named "default", else any; empty if there is none.
  const std::string& chat_template_source() const;

  /// "bos_token" -> "<|im_start|>" and so on, as chat templates see them. Only those that the model
  /// defines.
  const std::map<std::string, std::string>& special_token_texts() const;

  /// For the parts of this folder.
  explicit Tokenizer(std::shared_ptr<const TokenizerPipeline> pipeline);
  const TokenizerPipeline& pipeline() const { return *pipeline_; }

 private:
  std::shared_ptr<const TokenizerPipeline> pipeline_;
};

/// Turns ids into text one at a time, as they are sampled. The pieces together are what decode()
/// returns for all the ids. No piece ends inside a character: an incomplete one is held back until
/// its last byte arrives. (Byte-fallback vocabularies: characters that were returned before damaged
/// bytes followed them stay as they are.) Not thread-safe; one per sequence.
class TokenStream {
 public:
  TokenStream(Tokenizer tokenizer, bool skip_special_tokens);

  /// The text that `id` completes, often empty. Unknown ids add nothing.
  std::string push(std::int32_t id);

  /// The text that was still held back, with U+FFFD for an incomplete character. The stream can
  /// then be used for another sequence.
  std::string finish();

 private:
  std::string push_as_is(std::int32_t id);
  std::string push_bytes(std::string_view bytes);
  std::string push_window(std::int32_t id);
  std::string window_text() const;  // of the ids not yet emitted
  std::string emit_window();

  Tokenizer tokenizer_;
  bool skip_special_tokens_;
  std::string pending_;  // byte-level decoders: bytes of an unfinished character
  std::vector<std::int32_t>
      ids_;  // other decoders: the last emitted ids, for context, then those not yet emitted
  std::size_t emitted_ = 0;  // how many of ids_ are only context
  std::string uncleaned_;    // text whose spaces may still be removed; see cleanable_length()
};

}  // namespace rl
