#include "rl/tokenizer/json_overrides.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "rl/tokenizer/json_fields.h"
#include "rl/tokenizer/special_tokens.h"
#include "runtime/core/log.h"

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

namespace {

constexpr std::string_view kMetaspace = "\u2581";

// Their class puts the space in front of a text by itself, whatever the tokenizer.json says.
constexpr std::string_view kByteLevelClasses[] = {
    "GPT2Tokenizer",    "Qwen2Tokenizer",  "Qwen3_5Tokenizer", "GPTNeoXTokenizer",
    "CodeGenTokenizer", "CohereTokenizer", "RobertaTokenizer", "WhisperTokenizer"};

// Models whose files name LlamaTokenizer by mistake: transformers takes their tokenizer.json as it
// is.
constexpr std::string_view kMisnamedModels[] = {
    "arctic",    "chatlm",    "ernie4_5",   "ernie4_5_moe", "fuyu",       "h2ovl_chat",
    "internlm2", "internlm3", "jamba",      "llava",        "llava_next", "minicpm3",
    "minicpmv",  "nemotron",  "openvla",    "phi3",         "phi3_v",     "phimoe",
    "molmo",     "molmo2",    "minimax_m2", "vipllava"};

template <std::size_t N>
bool contains(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// An option that the file may leave out or set to null.
Result<std::optional<bool>> said_option(const json& config, const char* key) {
  const json* value = json_member(config, key);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_boolean())
    return runtime::invalid_argument("tokenizer_config.json: " + std::string(key) +
                                     " is neither true nor false");
  return std::optional(value->get<bool>());
}

void set_byte_level_space(json& component, bool space) {
  if (!component.is_object()) return;
  if (component.value("type", json()) == "ByteLevel") component["add_prefix_space"] = space;
  if (const auto inner = component.find("pretokenizers");
      inner != component.end() && inner->is_array()) {
    for (json& one : *inner) set_byte_level_space(one, space);
  }
}

bool is_component(const json& component, std::initializer_list<std::string_view> types) {
  const auto type = json_string_or(component, "type", "");
  return type.ok() && std::find(types.begin(), types.end(), *type) != types.end();
}

// Spaces written as U+2581 and one put in front, by the normalizer or by the pre-tokenizer, and
// nothing else.
bool only_marks_spaces(const json& tokenizer) {
  const json* splits = json_member(tokenizer, "pre_tokenizer");
  if (splits != nullptr && !is_component(*splits, {"Metaspace"})) return false;
  const json* normalizer = json_member(tokenizer, "normalizer");
  if (normalizer == nullptr) return splits != nullptr;
  const json* parts = json_member(*normalizer, "normalizers");
  if (parts == nullptr || !parts->is_array()) return is_component(*normalizer, {"Replace"});
  return std::all_of(parts->begin(), parts->end(), [](const json& one) {
    return is_component(one, {"Prepend", "Replace"});
  });
}

void set_llama_space(json& tokenizer, bool space, bool legacy) {
  const char* scheme = !space ? "never" : legacy ? "always" : "first";
  tokenizer["normalizer"] = nullptr;
  tokenizer["pre_tokenizer"] = {{"type", "Metaspace"},
                                {"replacement", kMetaspace},
                                {"prepend_scheme", scheme},
                                {"split", false}};
  json decoders = {{{"type", "Replace"}, {"pattern", {{"String", kMetaspace}}}, {"content", " "}},
                   {{"type", "ByteFallback"}},
                   {{"type", "Fuse"}}};
  if (space) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  tokenizer["decoder"] = {{"type", "Sequence"}, {"decoders", std::move(decoders)}};
}

// The tokens of a tokenizer.json with those of the files next to it.
class MergedTokens {
 public:
  MergedTokens(const Vocabulary& vocabulary, std::vector<AddedToken> tokens)
      : vocabulary_(vocabulary), tokens_(std::move(tokens)), next_id_(vocabulary.size()) {
    for (std::size_t i = 0; i < tokens_.size(); ++i) note(i);
  }

  bool has(const std::string& content) const { return places_.contains(content); }
  bool has_id(std::int64_t id) const {
    return std::any_of(tokens_.begin(), tokens_.end(),
                       [id](const AddedToken& token) { return token.id == id; });
  }

  // The id of a token that is neither added yet nor in the vocabulary is the next one, whatever
  // the file says, as in transformers.
  std::int32_t put(AddedToken token) {
    if (token.content.empty()) return -1;
    if (const auto known = places_.find(token.content); known != places_.end()) {
      AddedToken& old = tokens_[known->second];
      token.id = old.id;
      token.special = token.special || old.special;
      old = std::move(token);
      return old.id;
    }
    const auto id = vocabulary_.find(token.content);
    token.id = id ? *id : next_id_;
    tokens_.push_back(std::move(token));
    note(tokens_.size() - 1);
    return tokens_.back().id;
  }

  std::vector<AddedToken> take() { return std::move(tokens_); }

 private:
  void note(std::size_t place) {
    places_[tokens_[place].content] = place;
    next_id_ = std::max(next_id_, tokens_[place].id + 1);
  }

  const Vocabulary& vocabulary_;
  std::vector<AddedToken> tokens_;
  std::map<std::string, std::size_t> places_;
  std::int32_t next_id_;
};

std::optional<std::int64_t> id_of_key(const std::string& key) {
  std::int64_t id = -1;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error != std::errc() || end != key.data() + key.size() || id < 0) return std::nullopt;
  return id;
}

using NamedTexts = std::vector<std::string>;

Status put_decoder_tokens(const json& decoder, const NamedTexts& named, MergedTokens& merged) {
  if (!decoder.is_object()) return runtime::invalid_argument("should be an object, id to token");
  std::map<std::int64_t, const json*> by_id;
  for (auto it = decoder.begin(); it != decoder.end(); ++it) {
    const auto id = id_of_key(it.key());
    if (!id) return runtime::invalid_argument("\"" + it.key() + "\" is not a token id");
    by_id[*id] = &*it;
  }
  for (const auto& [id, entry] : by_id) {
    auto token = added_token_from_json(*entry, false);
    if (!token.ok()) return token.status().with_context(std::to_string(id));
    if (std::find(named.begin(), named.end(), token->content) != named.end()) token->special = true;
    const std::string content = token->content;
    const std::int32_t given = merged.put(std::move(*token));
    if (given >= 0 && given != id)
      LOG(warn,
          "tokenizer_config.json says id {} of \"{}\"; it gets {}, the next one, as in "
          "transformers",
          id, content, given);
  }
  return {};
}

// added_tokens.json says token to id and nothing else.
Status put_plain_tokens(const json& added, const NamedTexts& special, MergedTokens& merged) {
  std::multimap<std::int64_t, std::string> by_id;
  for (auto it = added.begin(); it != added.end(); ++it) {
    if (!it->is_number_unsigned() || it->get<std::uint64_t>() > INT32_MAX)
      return runtime::invalid_argument("the id of \"" + it.key() + "\" is not a number from 0");
    by_id.emplace(it->get<std::int64_t>(), it.key());
  }
  std::erase_if(by_id, [&merged](const auto& one) { return merged.has_id(one.first); });
  for (const auto& [id, content] : by_id) {
    AddedToken token;
    token.content = content;
    token.special = std::find(special.begin(), special.end(), content) != special.end();
    token.normalized = !token.special;
    merged.put(std::move(token));
  }
  return {};
}

Status put_special_tokens(const SlowTokenizerFiles& files, MergedTokens& merged) {
  auto named = named_special_tokens(files, {});
  if (!named.ok()) return named.status().with_context("tokenizer_config.json");
  auto extras = extra_special_tokens(files);
  if (!extras.ok()) return extras.status().with_context("tokenizer_config.json");
  NamedTexts texts;
  for (const NamedSpecialToken& one : *named) texts.push_back(one.token.content);
  if (const json* decoder = json_member(files.config, "added_tokens_decoder")) {
    Status status = put_decoder_tokens(*decoder, texts, merged);
    if (!status.ok()) return status.with_context("tokenizer_config.json: added_tokens_decoder");
  } else if (files.added.is_object()) {
    NamedTexts special = texts;
    for (const AddedToken& one : *extras) special.push_back(one.content);
    Status status = put_plain_tokens(files.added, special, merged);
    if (!status.ok()) return status.with_context("added_tokens.json");
  }
  for (NamedSpecialToken& one : *named) {
    if (!merged.has(one.token.content)) merged.put(std::move(one.token));
  }
  for (AddedToken& one : *extras) {
    if (!merged.has(one.content)) merged.put(std::move(one));
  }
  return {};
}

}  // namespace

Status apply_space_options(const SlowTokenizerFiles& files, json& tokenizer) {
  auto space = said_option(files.config, "add_prefix_space");
  if (!space.ok()) return space.status();
  auto legacy = said_option(files.config, "legacy");
  if (!legacy.ok()) return legacy.status();
  const bool llama =
      files.class_name == "LlamaTokenizer" && !contains(kMisnamedModels, files.model_type);
  if (llama && (*space || *legacy) && only_marks_spaces(tokenizer)) {
    set_llama_space(tokenizer, space->value_or(true), legacy->value_or(false));
    return {};
  }
  const bool gpt2 = files.class_name == "GPT2Tokenizer";
  if (!gpt2 && !(contains(kByteLevelClasses, files.class_name) && *space)) return {};
  if (const auto splits = tokenizer.find("pre_tokenizer"); splits != tokenizer.end())
    set_byte_level_space(*splits, space->value_or(false));
  return {};
}

Status apply_added_tokens(const SlowTokenizerFiles& files, TokenizerPipeline& pipeline) {
  auto split = said_option(files.config, "split_special_tokens");
  if (!split.ok()) return split.status();
  auto clean = said_option(files.config, "clean_up_tokenization_spaces");
  if (!clean.ok()) return clean.status();
  auto corrupt = said_option(
      files.config, "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output");
  if (!corrupt.ok()) return corrupt.status();
  pipeline.cleans_up_spaces =
      clean->value_or(false) && (pipeline.model->kind() != "BPE" || corrupt->value_or(false));
  MergedTokens merged(pipeline.model->vocabulary(), pipeline.added_tokens.tokens());
  if (Status status = put_special_tokens(files, merged); !status.ok()) return status;
  std::vector<AddedToken> tokens = merged.take();
  if (split->value_or(false)) {
    for (AddedToken& token : tokens) token.in_text = token.in_text && !token.special;
  }
  auto made = AddedTokens::make(std::move(tokens), pipeline.normalizer.get());
  if (!made.ok()) return made.status();
  pipeline.added_tokens = std::move(*made);
  return {};
}

void add_class_defaults(const SlowTokenizerFiles& files, TokenizerPipeline& pipeline) {
  static const std::map<std::string_view, std::vector<SpecialTokenDefault>> kDefaults = {
      {"GPT2Tokenizer",
       {{"bos_token", "<|endoftext|>"},
        {"eos_token", "<|endoftext|>"},
        {"unk_token", "<|endoftext|>"}}},
      {"Qwen2Tokenizer",
       {{"eos_token", "<|endoftext|>"},
        {"unk_token", "<|endoftext|>"},
        {"pad_token", "<|endoftext|>"}}},
      {"LlamaTokenizer", {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}}}};
  const auto found = kDefaults.find(files.class_name);
  if (found == kDefaults.end()) return;
  std::vector<SpecialTokenDefault> known = found->second;
  std::erase_if(known, [&pipeline](const auto& one) { return !pipeline.find(one.text); });
  add_special_token_defaults(files, known, pipeline);
}

}  // namespace rl
