// GGUF vocabularies to pipelines. GGUF names its pre-tokenizer instead of describing it. The table
// below says what each name stands for, and an unknown name is refused, since a wrong split would
// give plausible but wrong ids.
#include <algorithm>
#include <utility>

#include "rl/tokenizer/bpe.h"
#include "rl/tokenizer/gguf_chat_templates.h"
#include "rl/tokenizer/tokenizer_files.h"
#include "rl/tokenizer/unicode_text.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

// tokenizer.ggml.token_type
constexpr std::int64_t kTypeUnknown = 2;
constexpr std::int64_t kTypeControl = 3;
constexpr std::int64_t kTypeUserDefined = 4;
constexpr std::int64_t kTypeUnused = 5;
constexpr std::int64_t kTypeByte = 6;

constexpr std::string_view kSingleDigits = R"(\p{N})";
constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekkenPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4oPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeekV3Digits = R"(\p{N}{1,3})";
constexpr std::string_view kDeepSeekV3Ideographs = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
constexpr std::string_view kDeepSeekV3Words =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct PreTokenizerKind {
  std::vector<std::string_view> patterns;
  bool nfc = false;
  bool ignore_merges = false;
  bool add_bos = false;  // when the file does not say
};

Result<PreTokenizerKind> find_pre_tokenizer(std::string_view name) {
  const auto is_one_of = [name](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  // SmolLM's digits are single because its merges join none, not by their own split. transformers
  // reads "smollm" as GPT-2's pattern, and our reference ids are its.
  if (is_one_of({"gpt-2", "phi-2", "mpt", "olmo", "smollm"}))
    return PreTokenizerKind{{kGpt2Pattern}};
  if (is_one_of({"starcoder", "refact", "command-r", "codeshell"})) {
    return PreTokenizerKind{{kSingleDigits, kGpt2Pattern}};
  }
  if (is_one_of({"llama-bpe", "llama3", "llama-v3"}))
    return PreTokenizerKind{{kLlama3Pattern}, false, true, true};
  if (is_one_of({"glm4", "chatglm-bpe", "dbrx", "smaug-bpe"}))
    return PreTokenizerKind{{kLlama3Pattern}};
  if (is_one_of({"qwen2", "deepseek-r1-qwen"})) return PreTokenizerKind{{kQwen2Pattern}, true};
  if (is_one_of({"tekken"})) return PreTokenizerKind{{kTekkenPattern}, false, true, true};
  if (is_one_of({"gpt-4o"})) return PreTokenizerKind{{kGpt4oPattern}};
  if (is_one_of({"deepseek-v3"}))
    return PreTokenizerKind{{kDeepSeekV3Digits, kDeepSeekV3Ideographs, kDeepSeekV3Words}};
  return runtime::unimplemented(
      "tokenizer.ggml.pre " + std::string(name) +
      " is not supported; put the model's tokenizer.json in a folder and use that");
}

// What both kinds of vocabulary share.
struct GgufVocabulary {
  Vocabulary vocabulary;
  std::vector<std::int64_t> types;  // empty when the file has none
  std::vector<AddedToken> added;

  std::int64_t type(std::size_t id) const { return types.empty() ? 1 : types[id]; }
};

Result<GgufVocabulary> read_vocabulary(const GgufFile& file) {
  auto tokens = file.strings("tokenizer.ggml.tokens");
  if (!tokens.ok()) return tokens.status();
  GgufVocabulary result;
  if (file.metadata("tokenizer.ggml.token_type") != nullptr) {
    auto types = file.integers("tokenizer.ggml.token_type");
    if (!types.ok()) return types.status();
    if (types->size() != tokens->size()) {
      return runtime::invalid_argument(
          file.name() + ": tokenizer.ggml.token_type and tokenizer.ggml.tokens differ in length");
    }
    result.types = std::move(*types);
  }
  std::vector<std::pair<std::string_view, std::int64_t>> entries;
  entries.reserve(tokens->size());
  for (std::size_t id = 0; id < tokens->size(); ++id) {
    const std::string_view token = (*tokens)[id];
    if (invalid_utf8_at(token)) {
      return runtime::invalid_argument(file.name() + ": tokenizer.ggml.tokens[" +
                                       std::to_string(id) + "] is not UTF-8");
    }
    entries.emplace_back(token, static_cast<std::int64_t>(id));
    const std::int64_t type = result.type(id);
    if (type == kTypeControl || type == kTypeUnknown || type == kTypeUserDefined) {
      AddedToken added;
      added.id = static_cast<std::int32_t>(id);
      added.content = token;
      added.special = type != kTypeUserDefined;
      result.added.push_back(std::move(added));
    }
  }
  auto vocabulary = Vocabulary::make(entries);
  if (!vocabulary.ok()) return vocabulary.status().with_context(file.name());
  result.vocabulary = std::move(*vocabulary);
  return result;
}

Result<bool> flag_or(const GgufFile& file, std::string_view key, bool otherwise) {
  if (file.metadata(key) == nullptr) return otherwise;
  return file.boolean(key);
}

// The id under `key`, or none when the key is missing. Some converters write -1 for none.
Result<std::optional<std::int32_t>> read_gguf_id(const GgufFile& file, std::string_view key,
                                                 std::int32_t size) {
  if (file.metadata(key) == nullptr) return std::optional<std::int32_t>();
  auto id = file.integer(key);
  if (!id.ok()) return id.status();
  if (*id == -1 || *id == UINT32_MAX) return std::optional<std::int32_t>();
  if (*id < 0 || *id >= size) {
    return runtime::invalid_argument(file.name() + ": " + std::string(key) + " " +
                                     std::to_string(*id) + " is outside the vocabulary of " +
                                     std::to_string(size));
  }
  return std::optional(static_cast<std::int32_t>(*id));
}

// Special ids, their texts, what encoding adds, and the chat template.
Status add_specials(const GgufFile& file, bool add_bos_default, TokenizerPipeline& pipeline) {
  const struct {
    const char* key;
    const char* name;
    std::optional<std::int32_t>* id;
  } specials[] = {{"tokenizer.ggml.bos_token_id", "bos_token", &pipeline.bos_id},
                  {"tokenizer.ggml.eos_token_id", "eos_token", &pipeline.eos_id},
                  {"tokenizer.ggml.padding_token_id", "pad_token", &pipeline.pad_id},
                  {"tokenizer.ggml.unknown_token_id", "unk_token", nullptr}};
  for (const auto& special : specials) {
    auto id = read_gguf_id(file, special.key, pipeline.size());
    if (!id.ok()) return id.status();
    if (!*id) continue;
    pipeline.special_token_texts[special.name] = std::string(pipeline.token(**id));
    if (special.id != nullptr) *special.id = *id;
  }
  auto add_bos = flag_or(file, "tokenizer.ggml.add_bos_token", add_bos_default);
  auto add_eos = flag_or(file, "tokenizer.ggml.add_eos_token", false);
  if (!add_bos.ok()) return add_bos.status();
  if (!add_eos.ok()) return add_eos.status();
  if (*add_bos && pipeline.bos_id) pipeline.post_processor.prefix = {*pipeline.bos_id};
  if (*add_eos && pipeline.eos_id) pipeline.post_processor.suffix = {*pipeline.eos_id};
  auto templates = gguf_chat_templates(file);
  if (!templates.ok()) return templates.status();
  pipeline.chat_templates = std::move(*templates);
  return {};
}

Result<MergeTable> read_gguf_merges(const GgufFile& file, const Vocabulary& vocabulary) {
  auto lines = file.strings("tokenizer.ggml.merges");
  if (!lines.ok()) return lines.status();
  std::vector<std::pair<std::string_view, std::string_view>> merges;
  merges.reserve(lines->size());
  for (std::string_view line : *lines) {
    const std::size_t space = line.find(' ', 1);
    if (space == std::string_view::npos || invalid_utf8_at(line)) {
      return runtime::invalid_argument(file.name() + ": tokenizer.ggml.merges[" +
                                       std::to_string(merges.size()) + "] is not a pair of tokens");
    }
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  auto table = make_merges(vocabulary, merges, "");
  if (!table.ok()) return table.status().with_context(file.name() + ": tokenizer.ggml.merges");
  return table;
}

// "gpt2": bytes spelled in GPT-2's characters, merges in order.
Status load_byte_level(const GgufFile& file, GgufVocabulary vocabulary,
                       TokenizerPipeline& pipeline) {
  auto name = file.string("tokenizer.ggml.pre");
  if (!name.ok()) return name.status();
  auto kind = find_pre_tokenizer(*name);
  if (!kind.ok()) return kind.status().with_context(file.name());
  auto merges = read_gguf_merges(file, vocabulary.vocabulary);
  if (!merges.ok()) return merges.status();
  auto pre_tokenizer = make_byte_level_pre_tokenizer(kind->patterns);
  if (!pre_tokenizer.ok()) return pre_tokenizer.status();
  pipeline.pre_tokenizer = std::move(*pre_tokenizer);
  if (kind->nfc) pipeline.normalizer = make_nfc();
  BpeOptions options;
  options.pieces_are_bytes = pipeline.pre_tokenizer->defer_byte_level();
  options.ignore_merges = kind->ignore_merges;
  pipeline.model = std::make_unique<Bpe>(std::move(vocabulary.vocabulary), std::move(*merges),
                                         std::move(options));
  pipeline.decoder = make_byte_level_decoder();
  return add_specials(file, kind->add_bos, pipeline);
}

// "llama": SentencePiece's BPE. Spaces are U+2581, one goes before the text, unknown characters
// become byte tokens.
Status load_sentencepiece(const GgufFile& file, GgufVocabulary vocabulary,
                          TokenizerPipeline& pipeline) {
  auto scores = file.numbers("tokenizer.ggml.scores");
  if (!scores.ok()) return scores.status();
  const auto size = static_cast<std::size_t>(vocabulary.vocabulary.size());
  if (scores->size() != size) {
    return runtime::invalid_argument(
        file.name() + ": tokenizer.ggml.scores and tokenizer.ggml.tokens differ in length");
  }
  std::vector<bool> mergeable(size);
  for (std::size_t id = 0; id < size; ++id) {
    const std::int64_t type = vocabulary.type(id);
    mergeable[id] =
        type != kTypeControl && type != kTypeUnknown && type != kTypeUnused && type != kTypeByte;
  }
  auto space_prefix = flag_or(file, "tokenizer.ggml.add_space_prefix", true);
  if (!space_prefix.ok()) return space_prefix.status();
  auto unknown =
      read_gguf_id(file, "tokenizer.ggml.unknown_token_id", static_cast<std::int32_t>(size));
  if (!unknown.ok()) return unknown.status();
  std::vector<std::unique_ptr<Normalizer>> normalizers;
  if (*space_prefix) normalizers.push_back(make_prepend(std::string(kWordMark)));
  normalizers.push_back(make_replace(" ", std::string(kWordMark)));
  pipeline.normalizer = make_normalizer_sequence(std::move(normalizers));
  BpeOptions options;
  options.byte_fallback = true;
  options.fuse_unknown = true;
  options.unknown_id = *unknown;
  MergeTable merges = make_merges_from_scores(vocabulary.vocabulary, *scores, mergeable);
  pipeline.model = std::make_unique<Bpe>(std::move(vocabulary.vocabulary), std::move(merges),
                                         std::move(options));
  pipeline.decoder = make_sentencepiece_decoder(*space_prefix ? 1 : 0);
  return add_specials(file, true, pipeline);
}

}  // namespace

Result<std::unique_ptr<TokenizerPipeline>> tokenizer_pipeline_from_gguf(const GgufFile& file) {
  auto kind = file.string("tokenizer.ggml.model");
  if (!kind.ok()) return kind.status();
  auto vocabulary = read_vocabulary(file);
  if (!vocabulary.ok()) return vocabulary.status();
  auto pipeline = std::make_unique<TokenizerPipeline>();
  auto added = AddedTokens::make(vocabulary->added, nullptr);
  if (!added.ok()) return added.status();
  pipeline->added_tokens = std::move(*added);
  Status status;
  if (*kind == "gpt2") {
    status = load_byte_level(file, std::move(*vocabulary), *pipeline);
  } else if (*kind == "llama") {
    status = load_sentencepiece(file, std::move(*vocabulary), *pipeline);
  } else {
    status = runtime::unimplemented(
        file.name() + ": tokenizer.ggml.model " + std::string(*kind) +
        " is not supported; put the model's tokenizer.json in a folder and use that");
  }
  if (!status.ok()) return status;
  return pipeline;
}

}  // namespace rl
