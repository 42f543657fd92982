#include "rl/text/tokenizer_slow_files.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "rl/text/tokenizer_json_fields.h"
#include "rl/text/tokenizer_small_files.h"

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kSlowIdMax = 1 << 24;  // as in a tokenizer.json

// Adds tokens and hands out ids.
class Collector {
 public:
  Collector(const Vocabulary& vocabulary, std::vector<AddedToken> tokens)
      : vocabulary_(vocabulary), tokens_(std::move(tokens)), next_id_(vocabulary.size()) {
    for (const AddedToken& token : tokens_) note(token);
  }

  bool has(std::string_view content) const { return contents_.contains(std::string(content)); }

  // A token that the vocabulary has keeps its id there, as in transformers; else it gets `wanted`,
  // or the next free one.
  Status add(AddedToken token, std::optional<std::int64_t> wanted) {
    if (token.content.empty() || has(token.content)) return {};
    const auto known = vocabulary_.find(token.content);
    token.id = known ? *known : static_cast<std::int32_t>(wanted.value_or(next_id_));
    if (!known && ids_.contains(token.id)) {
      return runtime::invalid_argument("tokens \"" + ids_[token.id] + "\" and \"" + token.content +
                                       "\" have the same id " + std::to_string(token.id));
    }
    if (!known && !vocabulary_.token(token.id).empty()) {
      return runtime::invalid_argument(
          "added token \"" + token.content + "\" has id " + std::to_string(token.id) +
          ", which is \"" + std::string(vocabulary_.token(token.id)) + "\" in the vocabulary");
    }
    note(token);
    tokens_.push_back(std::move(token));
    return {};
  }

  std::vector<AddedToken> take() { return std::move(tokens_); }

 private:
  void note(const AddedToken& token) {
    contents_.emplace(token.content, token.id);
    ids_.emplace(token.id, token.content);
    next_id_ = std::max<std::int64_t>(next_id_, token.id + 1);
  }

  const Vocabulary& vocabulary_;
  std::vector<AddedToken> tokens_;
  std::map<std::string, std::int32_t> contents_;
  std::map<std::int32_t, std::string> ids_;
  std::int64_t next_id_;
};

// {"content": "</s>", "lstrip": false, ...}, or a plain string, which is a special token found in
// the original text.
Result<AddedToken> token_from_json(const json& entry, bool special_otherwise) {
  AddedToken token;
  if (entry.is_string()) {
    token.content = entry.get<std::string>();
    token.special = special_otherwise;
    token.normalized = !special_otherwise;
    return token;
  }
  auto content = json_string(entry, "content");
  auto special = json_bool_or(entry, "special", special_otherwise);
  auto single_word = json_bool_or(entry, "single_word", false);
  auto left = json_bool_or(entry, "lstrip", false);
  auto right = json_bool_or(entry, "rstrip", false);
  auto normalized = json_bool_or(entry, "normalized", special.ok() && !*special);
  if (!content.ok()) return content.status();
  for (const auto* field : {&special, &single_word, &left, &right, &normalized}) {
    if (!field->ok()) return field->status();
  }
  return AddedToken{-1, std::string(*content), *special, *single_word, *left, *right, *normalized};
}

Result<std::int64_t> id_from_key(const std::string& key) {
  std::int64_t id = -1;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error != std::errc() || end != key.data() + key.size() || id < 0 || id > kSlowIdMax)
    return runtime::invalid_argument("\"" + key + "\" is no token id");
  return id;
}

Status add_decoder_tokens(const json& decoder, Collector& collector) {
  if (!decoder.is_object()) return runtime::invalid_argument("should be an object, id to token");
  std::map<std::int64_t, const json*> by_id;
  for (auto it = decoder.begin(); it != decoder.end(); ++it) {
    auto id = id_from_key(it.key());
    if (!id.ok()) return id.status();
    by_id[*id] = &*it;
  }
  for (const auto& [id, entry] : by_id) {
    auto token = token_from_json(*entry, false);
    Status status = token.ok() ? collector.add(std::move(*token), id) : token.status();
    if (!status.ok()) return status.with_context(std::to_string(id));
  }
  return {};
}

// added_tokens.json says token to id and nothing else: those that the config names as special are.
Status add_plain_tokens(const json& added, const std::vector<std::string>& special,
                        Collector& collector) {
  std::multimap<std::int64_t, std::string> by_id;
  for (auto it = added.begin(); it != added.end(); ++it) {
    if (!it->is_number_unsigned() ||
        it->get<std::uint64_t>() > static_cast<std::uint64_t>(kSlowIdMax)) {
      return runtime::invalid_argument("the id of \"" + it.key() + "\" is not a number from 0");
    }
    by_id.emplace(it->get<std::int64_t>(), it.key());
  }
  for (const auto& [id, content] : by_id) {
    AddedToken token;
    token.content = content;
    token.special = std::find(special.begin(), special.end(), content) != special.end();
    token.normalized = !token.special;
    if (Status status = collector.add(std::move(token), id); !status.ok()) return status;
  }
  return {};
}

// What the files say of a special token: tokenizer_config.json, then special_tokens_map.json.
const json* named_token(const SlowTokenizerFiles& files, const char* name) {
  if (files.config.is_object() && files.config.contains(name))
    return json_member(files.config, name);
  return json_member(files.map, name);
}

const json* extra_tokens(const SlowTokenizerFiles& files) {
  for (const json* file : {&files.config, &files.map}) {
    for (const char* key : {"extra_special_tokens", "additional_special_tokens"}) {
      const json* list = json_member(*file, key);
      if (list != nullptr && (list->is_array() || list->is_object()) && !list->empty()) return list;
    }
  }
  return nullptr;
}

bool denied(const SlowTokenizerFiles& files, const char* name) {
  return files.config.is_object() && files.config.contains(name) && files.config.at(name).is_null();
}

Status add_special_tokens(const SlowTokenizerFiles& files,
                          std::span<const SpecialTokenDefault> defaults, Collector& collector) {
  for (const char* name : kSpecialTokenNames) {
    const json* entry = named_token(files, name);
    json standard;
    if (entry == nullptr && !denied(files, name)) {
      const auto known = std::find_if(defaults.begin(), defaults.end(), [&](const auto& one) {
        return std::string_view(one.name) == name;
      });
      if (known != defaults.end()) entry = &(standard = std::string(known->text));
    }
    if (entry == nullptr || entry->is_boolean()) continue;
    auto token = token_from_json(*entry, true);
    if (!token.ok()) return token.status().with_context(name);
    token->special = true;
    if (Status status = collector.add(std::move(*token), std::nullopt); !status.ok())
      return status.with_context(name);
  }
  const json* extras = extra_tokens(files);
  if (extras == nullptr) return {};
  for (const json& entry : *extras) {
    auto token = token_from_json(entry, true);
    Status status = token.ok() ? collector.add(std::move(*token), std::nullopt) : token.status();
    if (!status.ok()) return status.with_context("additional_special_tokens");
  }
  return {};
}

}  // namespace

Result<SlowTokenizerFiles> read_slow_tokenizer_files(const fs::path& folder) {
  SlowTokenizerFiles files;
  const std::pair<const char*, json*> parts[] = {{"tokenizer_config.json", &files.config},
                                                 {"special_tokens_map.json", &files.map},
                                                 {"added_tokens.json", &files.added}};
  for (const auto& [name, part] : parts) {
    auto read = read_optional_json(folder / name);
    if (!read.ok()) return read.status();
    *part = std::move(*read);
  }
  auto model = read_optional_json(folder / "config.json");
  if (!model.ok()) return model.status();
  for (const json* file :
       {static_cast<const json*>(&files.config), static_cast<const json*>(&*model)}) {
    auto name = json_string_or(*file, "tokenizer_class", "");
    if (!name.ok())
      return name.status().with_context(
          (folder / (file == &files.config ? "tokenizer_config.json" : "config.json")).string());
    if (files.class_name.empty()) files.class_name = *name;
  }
  if (files.class_name.ends_with("Fast")) files.class_name.resize(files.class_name.size() - 4);
  auto type = json_string_or(*model, "model_type", "");
  if (!type.ok()) return type.status().with_context((folder / "config.json").string());
  files.model_type = *type;
  return files;
}

Result<std::vector<AddedToken>> slow_added_tokens(const SlowTokenizerFiles& files,
                                                  std::span<const SpecialTokenDefault> defaults,
                                                  const Vocabulary& vocabulary,
                                                  std::vector<AddedToken> tokens) {
  Collector collector(vocabulary, std::move(tokens));
  if (const json* decoder = json_member(files.config, "added_tokens_decoder")) {
    Status status = add_decoder_tokens(*decoder, collector);
    if (!status.ok()) return status.with_context("tokenizer_config.json: added_tokens_decoder");
  } else if (files.added.is_object()) {
    std::vector<std::string> special;
    for (const char* name : kSpecialTokenNames) {
      const json* entry = named_token(files, name);
      auto token =
          entry == nullptr ? Result<AddedToken>(AddedToken{}) : token_from_json(*entry, true);
      if (token.ok()) special.push_back(token->content);
    }
    const json empty = json::array();
    const json* extras = extra_tokens(files);
    for (const json& entry : extras != nullptr ? *extras : empty) {
      auto token = token_from_json(entry, true);
      if (token.ok()) special.push_back(token->content);
    }
    Status status = add_plain_tokens(files.added, special, collector);
    if (!status.ok()) return status.with_context("added_tokens.json");
  }
  Status status = add_special_tokens(files, defaults, collector);
  if (!status.ok()) return status.with_context("tokenizer_config.json");
  return collector.take();
}

void add_special_token_defaults(const SlowTokenizerFiles& files,
                                std::span<const SpecialTokenDefault> defaults,
                                TokenizerPipeline& pipeline) {
  for (const SpecialTokenDefault& one : defaults) {
    if (!denied(files, one.name)) pipeline.special_token_texts[one.name] = std::string(one.text);
  }
}

Status add_begin_and_end(const SlowTokenizerFiles& files, bool bos_otherwise, bool eos_otherwise,
                         TokenizerPipeline& pipeline) {
  const struct {
    const char* key;
    bool otherwise;
    std::optional<std::int32_t> id;
    std::vector<std::int32_t>* ids;
  } ends[] = {{"add_bos_token", bos_otherwise, pipeline.bos_id, &pipeline.post_processor.prefix},
              {"add_eos_token", eos_otherwise, pipeline.eos_id, &pipeline.post_processor.suffix}};
  for (const auto& end : ends) {
    auto wanted = json_bool_or(files.config, end.key, end.otherwise);
    if (!wanted.ok()) return wanted.status().with_context("tokenizer_config.json");
    if (*wanted && end.id) end.ids->assign(1, *end.id);
  }
  return {};
}

}  // namespace rl
