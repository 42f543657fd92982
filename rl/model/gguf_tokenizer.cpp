#include "rl/model/gguf_tokenizer.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rl/template/chat_templates.h"
#include "rl/tokenizer/gguf_chat_templates.h"
#include "rl/tokenizer/unicode_text.h"
#include "rl/weights/gguf.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::Result;
using runtime::Status;

// GGUF's tokenizer.ggml.token_type.
constexpr std::int64_t kUnknownToken = 2;
constexpr std::int64_t kControlToken = 3;
constexpr std::int64_t kUserDefinedToken = 4;

constexpr const char* kLlama3Split =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

ordered_json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

// What `tokenizer.ggml.pre` names.
struct Split {
  ordered_json pre_tokenizer;  // null: a name that we don't know
  bool ignore_merges = false;
  bool add_bos = false;  // where the file does not say
};

Split find_split(std::string_view name) {
  // SmolLM's digits are single because its merges join none: the published ids are those of GPT-2's
  // pattern.
  if (name == "gpt-2" || name == "smollm") return {.pre_tokenizer = byte_level(true)};
  if (name == "llama-bpe" || name == "llama3" || name == "llama-v3") {
    const ordered_json words = {{"type", "Split"},
                                {"pattern", {{"Regex", kLlama3Split}}},
                                {"behavior", "Isolated"},
                                {"invert", false}};
    return {.pre_tokenizer = {{"type", "Sequence"},
                              {"pretokenizers", ordered_json::array({words, byte_level(false)})}},
            .ignore_merges = true,
            .add_bos = true};
  }
  return {};
}

struct SpecialToken {
  std::int64_t id = 0;
  std::string text;
};

// Puts `begin` before and `end` after every text; null when there is neither.
ordered_json template_processor(const std::optional<SpecialToken>& begin,
                                const std::optional<SpecialToken>& end) {
  if (!begin && !end) return nullptr;
  ordered_json specials = ordered_json::object();
  const auto special = [&](const SpecialToken& token, int type) -> ordered_json {
    specials[token.text] = {{"id", token.text},
                            {"ids", ordered_json::array({token.id})},
                            {"tokens", ordered_json::array({token.text})}};
    return {{"SpecialToken", {{"id", token.text}, {"type_id", type}}}};
  };
  const auto append = [&](ordered_json& list, const char* text, int type) {
    if (begin) list.push_back(special(*begin, type));
    list.push_back({{"Sequence", {{"id", text}, {"type_id", type}}}});
    if (end) list.push_back(special(*end, type));
  };
  ordered_json single = ordered_json::array();
  append(single, "A", 0);
  ordered_json pair = single;
  append(pair, "B", 1);
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", specials}};
}

Result<ordered_json> merges_json(const GgufFile& file) {
  Result<std::vector<std::string_view>> merges = file.strings("tokenizer.ggml.merges");
  if (!merges.ok()) return merges.status();
  ordered_json out = ordered_json::array();
  for (const std::string_view merge : *merges) {
    const std::size_t space = merge.find(' ', 1);  // a part may not be empty
    if (space == std::string_view::npos || space + 1 == merge.size() || invalid_utf8_at(merge)) {
      return runtime::invalid_argument(file.name() + ": tokenizer.ggml.merges: \"" +
                                       std::string(merge.substr(0, 60)) + "\" is not a pair");
    }
    out.push_back({std::string(merge.substr(0, space)), std::string(merge.substr(space + 1))});
  }
  return out;
}

// The token of `tokenizer.ggml.<which>_token_id`, if the file names one.
Result<std::optional<SpecialToken>> special_token(const GgufFile& file,
                                                  const std::vector<std::string_view>& tokens,
                                                  std::string_view which) {
  const std::string key = "tokenizer.ggml." + std::string(which) + "_token_id";
  if (file.metadata(key) == nullptr) return std::optional<SpecialToken>();
  Result<std::int64_t> id = file.integer(key);
  if (!id.ok()) return id.status();
  if (*id == -1 || *id == UINT32_MAX)
    return std::optional<SpecialToken>();  // some converters' way to say none
  if (*id < 0 || *id >= static_cast<std::int64_t>(tokens.size())) {
    return runtime::invalid_argument(file.name() + ": " + key + " " + std::to_string(*id) +
                                     " is outside the vocabulary");
  }
  return std::optional(SpecialToken{*id, std::string(tokens[static_cast<std::size_t>(*id)])});
}

bool flag(const GgufFile& file, std::string_view key, bool otherwise) {
  const GgufValue* value = file.metadata(key);
  return value != nullptr ? value->as_bool().value_or(otherwise) : otherwise;
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
    return runtime::invalid_argument(file.name() + ": tokenizer.ggml.token_type has " +
                                     std::to_string(types->size()) + " entries for " +
                                     std::to_string(tokens->size()) + " tokens");
  }
  for (const std::string_view token : *tokens) {
    if (invalid_utf8_at(token))
      return runtime::invalid_argument(file.name() +
                                       ": tokenizer.ggml.tokens holds text that is not UTF-8");
  }
  return Vocabulary{std::move(*tokens), std::move(*types)};
}

ordered_json added_tokens(const Vocabulary& vocabulary) {
  ordered_json list = ordered_json::array();
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::int64_t type = vocabulary.types[id];
    if (type != kControlToken && type != kUnknownToken && type != kUserDefinedToken) continue;
    list.push_back({{"id", id},
                    {"content", std::string(vocabulary.tokens[id])},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", type != kUserDefinedToken}});
  }
  return list;
}

Result<ordered_json> model_json(const GgufFile& file, const Vocabulary& vocabulary,
                                bool ignore_merges) {
  Result<ordered_json> merges = merges_json(file);
  if (!merges.ok()) return merges;
  ordered_json::object_t
      vocab;  // appended without looking for duplicates, which would take quadratic time
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
  const std::string name(pre != nullptr ? pre->as_string().value_or("") : "gpt-2");
  Split split = find_split(name);
  if (*kind != "gpt2" || split.pre_tokenizer.is_null()) {
    return runtime::unimplemented(
        file.name() + ": tokenizer.ggml.model \"" + std::string(kind->substr(0, 60)) +
        "\" with split \"" + name.substr(0, 60) +
        "\" can't be written as tokenizer.json (gpt2 with gpt-2, smollm or llama-bpe can)");
  }
  Result<Vocabulary> vocabulary = read_vocabulary(file);
  if (!vocabulary.ok()) return vocabulary.status();
  Result<ordered_json> model = model_json(file, *vocabulary, split.ignore_merges);
  if (!model.ok()) return model.status();

  GgufTokenizer out;
  out.config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                {"clean_up_tokenization_spaces", false}};
  std::optional<SpecialToken> begin;
  std::optional<SpecialToken> end;
  for (const auto& [role, key] : {std::pair("bos", "bos_token"),
                                  {"eos", "eos_token"},
                                  {"unknown", "unk_token"},
                                  {"padding", "pad_token"}}) {
    Result<std::optional<SpecialToken>> token = special_token(file, vocabulary->tokens, role);
    if (!token.ok()) return token.status();
    if (!*token) continue;
    out.config[key] = (*token)->text;
    if (role == std::string_view("bos") &&
        flag(file, "tokenizer.ggml.add_bos_token", split.add_bos))
      begin = **token;
    if (role == std::string_view("eos") && flag(file, "tokenizer.ggml.add_eos_token", false))
      end = **token;
  }
  if (const GgufValue* length = file.metadata("llama.context_length");
      length != nullptr && length->as_integer()) {
    out.config["model_max_length"] = *length->as_integer();
  }
  auto templates = gguf_chat_templates(file);
  if (!templates.ok()) return templates.status();
  if (templates->size() == 1 && templates->contains(kDefaultTemplate)) {
    out.config["chat_template"] = templates->at(kDefaultTemplate);
  } else {
    for (const auto& [of, text] : *templates)
      out.config["chat_template"].push_back({{"name", of}, {"template", text}});
  }
  out.tokenizer = {{"version", "1.0"},
                   {"truncation", nullptr},
                   {"padding", nullptr},
                   {"added_tokens", added_tokens(*vocabulary)},
                   {"normalizer", nullptr},
                   {"pre_tokenizer", std::move(split.pre_tokenizer)},
                   {"post_processor", template_processor(begin, end)},
                   {"decoder",
                    {{"type", "ByteLevel"},
                     {"add_prefix_space", true},
                     {"trim_offsets", true},
                     {"use_regex", true}}},
                   {"model", std::move(*model)}};
  return out;
}

}  // namespace rl
