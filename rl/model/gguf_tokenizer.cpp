#include "rl/model/gguf_tokenizer.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rl/weights/gguf.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::Result;
using runtime::Status;

// GGUF's tokenizer.ggml.token_type.
constexpr std::int64_t kControlToken = 3;
constexpr std::int64_t kUserDefinedToken = 4;

constexpr const char* kLlama3Split =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

ordered_json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

ordered_json sequence(ordered_json first, ordered_json second) {
  return {{"type", "Sequence"}, {"pretokenizers", ordered_json::array({std::move(first), std::move(second)})}};
}

// The pre-tokenizer that `tokenizer.ggml.pre` names; null when we don't know the name.
ordered_json pre_tokenizer(std::string_view name) {
  if (name == "gpt-2" || name == "gpt2") return byte_level(true);
  if (name == "smollm") return sequence({{"type", "Digits"}, {"individual_digits", true}}, byte_level(true));
  if (name == "llama-bpe" || name == "llama3") {
    return sequence({{"type", "Split"}, {"pattern", {{"Regex", kLlama3Split}}}, {"behavior", "Isolated"}, {"invert", false}},
                    byte_level(false));
  }
  return nullptr;
}

// Adds the begin token in front, as `tokenizer.ggml.add_bos_token` asks.
ordered_json begin_processor(const std::string& token, std::int64_t id) {
  const ordered_json begin = {{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
  const auto text = [](const char* which, int type) { return ordered_json{{"Sequence", {{"id", which}, {"type_id", type}}}}; };
  return {{"type", "TemplateProcessing"},
          {"single", ordered_json::array({begin, text("A", 0)})},
          {"pair", ordered_json::array({begin, text("A", 0), begin, text("B", 1)})},
          {"special_tokens", {{token, {{"id", token}, {"ids", {id}}, {"tokens", {token}}}}}}};
}

Result<ordered_json> merges_json(const GgufFile& file) {
  Result<std::vector<std::string_view>> merges = file.strings("tokenizer.ggml.merges");
  if (!merges.ok()) return merges.status();
  ordered_json out = ordered_json::array();
  for (const std::string_view merge : *merges) {
    const std::size_t space = merge.find(' ', 1);  // a part may not be empty
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      return runtime::invalid_argument(file.name() + ": tokenizer.ggml.merges: \"" + std::string(merge.substr(0, 60)) + "\" is no pair");
    }
    out.push_back({std::string(merge.substr(0, space)), std::string(merge.substr(space + 1))});
  }
  return out;
}

// The token of `tokenizer.ggml.<which>_token_id`, if the file names one.
struct SpecialToken {
  std::int64_t id = 0;
  std::string text;
};
Result<std::optional<SpecialToken>> special_token(const GgufFile& file, const std::vector<std::string_view>& tokens,
                                                  std::string_view which) {
  const std::string key = "tokenizer.ggml." + std::string(which) + "_token_id";
  if (file.metadata(key) == nullptr) return std::optional<SpecialToken>();
  Result<std::int64_t> id = file.integer(key);
  if (!id.ok()) return id.status();
  if (*id < 0 || *id >= static_cast<std::int64_t>(tokens.size())) {
    return runtime::invalid_argument(file.name() + ": " + key + " " + std::to_string(*id) + " is outside the vocabulary");
  }
  return std::optional(SpecialToken{*id, std::string(tokens[static_cast<std::size_t>(*id)])});
}

bool is_true(const GgufFile& file, std::string_view key) {
  const GgufValue* value = file.metadata(key);
  return value != nullptr && value->as_bool().value_or(false);
}

struct Vocabulary {
  std::vector<std::string_view> tokens;
  std::vector<std::int64_t> types;
};

Result<Vocabulary> read_vocabulary(const GgufFile& file) {
  Result<std::vector<std::string_view>> tokens = file.strings("tokenizer.ggml.tokens");
  if (!tokens.ok()) return tokens.status();
  Result<std::vector<std::int64_t>> types = file.integers("tokenizer.ggml.token_type");
  if (!types.ok()) return types.status();
  if (types->size() != tokens->size()) {
    return runtime::invalid_argument(file.name() + ": tokenizer.ggml.token_type has " + std::to_string(types->size()) +
                                     " entries for " + std::to_string(tokens->size()) + " tokens");
  }
  return Vocabulary{std::move(*tokens), std::move(*types)};
}

ordered_json added_tokens(const Vocabulary& vocabulary) {
  ordered_json list = ordered_json::array();
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::int64_t type = vocabulary.types[id];
    if (type != kControlToken && type != kUserDefinedToken) continue;
    list.push_back({{"id", id},
                    {"content", std::string(vocabulary.tokens[id])},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", type == kControlToken}});
  }
  return list;
}

Result<ordered_json> model_json(const GgufFile& file, const Vocabulary& vocabulary, bool ignore_merges) {
  Result<ordered_json> merges = merges_json(file);
  if (!merges.ok()) return merges;
  ordered_json::object_t vocab;  // appended without looking for duplicates, which would take quadratic time
  vocab.reserve(vocabulary.tokens.size());
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    vocab.Container::emplace_back(std::string(vocabulary.tokens[id]), id);
  }
  return ordered_json{{"type", "BPE"},
                      {"dropout", nullptr},
                      {"unk_token", nullptr},
                      {"continuing_subword_prefix", nullptr},
                      {"end_of_word_suffix", nullptr},
                      {"fuse_unk", false},
                      {"byte_fallback", false},
                      {"ignore_merges", ignore_merges},
                      {"vocab", std::move(vocab)},
                      {"merges", std::move(*merges)}};
}

}  // namespace

Result<GgufTokenizer> read_gguf_tokenizer(const GgufFile& file) {
  Result<std::string_view> kind = file.string("tokenizer.ggml.model");
  if (!kind.ok()) return kind.status();
  const GgufValue* pre = file.metadata("tokenizer.ggml.pre");
  const std::string split(pre != nullptr ? pre->as_string().value_or("") : "gpt-2");
  ordered_json splitter = pre_tokenizer(split);
  if (*kind != "gpt2" || splitter.is_null()) {
    return runtime::unimplemented(file.name() + ": tokenizer.ggml.model \"" + std::string(kind->substr(0, 60)) + "\" with split \"" +
                                  split.substr(0, 60) + "\" can't be written as tokenizer.json (gpt2 with gpt-2, smollm or llama-bpe can)");
  }
  Result<Vocabulary> vocabulary = read_vocabulary(file);
  if (!vocabulary.ok()) return vocabulary.status();
  Result<ordered_json> model = model_json(file, *vocabulary, /*ignore_merges=*/split.starts_with("llama"));
  if (!model.ok()) return model.status();

  GgufTokenizer out;
  out.config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  ordered_json processor = nullptr;
  struct Role {
    std::string_view gguf;
    const char* name;
  };
  for (const Role& role : {Role{"bos", "bos_token"}, Role{"eos", "eos_token"}, Role{"unknown", "unk_token"}, Role{"padding", "pad_token"}}) {
    Result<std::optional<SpecialToken>> token = special_token(file, vocabulary->tokens, role.gguf);
    if (!token.ok()) return token.status();
    if (!*token) continue;
    out.config[role.name] = (*token)->text;
    if (role.gguf == "bos" && is_true(file, "tokenizer.ggml.add_bos_token")) processor = begin_processor((*token)->text, (*token)->id);
  }
  if (const GgufValue* length = file.metadata("llama.context_length"); length != nullptr && length->as_integer()) {
    out.config["model_max_length"] = *length->as_integer();
  }
  if (const GgufValue* chat = file.metadata("tokenizer.chat_template"); chat != nullptr && chat->as_string()) {
    out.config["chat_template"] = std::string(*chat->as_string());
  }
  out.tokenizer = {{"version", "1.0"},
                   {"truncation", nullptr},
                   {"padding", nullptr},
                   {"added_tokens", added_tokens(*vocabulary)},
                   {"normalizer", nullptr},
                   {"pre_tokenizer", std::move(splitter)},
                   {"post_processor", std::move(processor)},
                   {"decoder", {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
                   {"model", std::move(*model)}};
  return out;
}

}  // namespace rl
