#include "rl/tokenizer/vocabulary_files.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "rl/tokenizer/json_fields.h"
#include "rl/tokenizer/small_files.h"
#include "rl/tokenizer/special_tokens.h"

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

Result<std::int64_t> id_from_key(const std::string& key) {
  std::int64_t id = -1;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error != std::errc() || end != key.data() + key.size() || id < 0 || id > kSlowIdMax)
    return runtime::invalid_argument("\"" + key + "\" is not a token id");
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
    auto token = added_token_from_json(*entry, false);
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

Status add_special_tokens(const std::vector<NamedSpecialToken>& named,
                          const std::vector<AddedToken>& extras, Collector& collector) {
  for (const NamedSpecialToken& one : named) {
    if (Status status = collector.add(one.token, std::nullopt); !status.ok())
      return status.with_context(one.name);
  }
  for (const AddedToken& token : extras) {
    if (Status status = collector.add(token, std::nullopt); !status.ok())
      return status.with_context("additional_special_tokens");
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
    auto read = read_optional_ordered_json(folder / name);
    if (!read.ok()) return read.status();
    *part = json(*read);
    if (part == &files.config) files.ordered_config = std::move(*read);
    if (part == &files.map) files.ordered_map = std::move(*read);
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
  auto named = named_special_tokens(files, defaults);
  if (!named.ok()) return named.status().with_context("tokenizer_config.json");
  auto extras = extra_special_tokens(files);
  if (!extras.ok()) return extras.status().with_context("tokenizer_config.json");
  if (const json* decoder = json_member(files.config, "added_tokens_decoder")) {
    Status status = add_decoder_tokens(*decoder, collector);
    if (!status.ok()) return status.with_context("tokenizer_config.json: added_tokens_decoder");
  } else if (files.added.is_object()) {
    std::vector<std::string> special;
    for (const NamedSpecialToken& one : *named) special.push_back(one.token.content);
    for (const AddedToken& one : *extras) special.push_back(one.content);
    Status status = add_plain_tokens(files.added, special, collector);
    if (!status.ok()) return status.with_context("added_tokens.json");
  }
  Status status = add_special_tokens(*named, *extras, collector);
  if (!status.ok()) return status.with_context("tokenizer_config.json");
  return collector.take();
}

void add_special_token_defaults(const SlowTokenizerFiles& files,
                                std::span<const SpecialTokenDefault> defaults,
                                TokenizerPipeline& pipeline) {
  for (const SpecialTokenDefault& one : defaults) {
    if (!denies_special_token(files, one.name))
      pipeline.special_token_texts[one.name] = std::string(one.text);
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
