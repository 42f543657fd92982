#include "rl/tokenizer/special_tokens.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "rl/tokenizer/json_fields.h"

namespace rl {

using nlohmann::json;
using nlohmann::ordered_json;
using runtime::Result;
using runtime::Status;

namespace {

bool heeds_map(const SlowTokenizerFiles& files) {
  return files.map.is_object() && json_member(files.config, "added_tokens_decoder") == nullptr;
}

// What the files say of a key, JSON null included; a null pointer where they say nothing.
const json* said_of(const SlowTokenizerFiles& files, const char* key) {
  for (const json* file : {&files.map, &files.config}) {
    if (file == &files.map && !heeds_map(files)) continue;
    if (!file->is_object()) continue;
    if (const auto found = file->find(key); found != file->end()) return &*found;
  }
  return nullptr;
}

bool is_standard_name(std::string_view name) {
  return std::find(std::begin(kSpecialTokenNames), std::end(kSpecialTokenNames), name) !=
         std::end(kSpecialTokenNames);
}

bool is_token(const ordered_json& value) {
  return value.is_string() || (value.is_object() && value.contains("content"));
}

class NamedTokens {
 public:
  Status add(const std::string& name, const json& value) {
    auto token = added_token_from_json(value, true);
    if (!token.ok()) return token.status().with_context(name);
    token->special = true;
    const auto same = [&name](const NamedSpecialToken& one) { return one.name == name; };
    if (auto known = std::find_if(named_.begin(), named_.end(), same); known != named_.end()) {
      known->token = std::move(*token);
    } else {
      named_.push_back({name, std::move(*token)});
    }
    return {};
  }

  // A model's own names: any key that ends in "_token".
  Status add_own(const ordered_json& file) {
    if (!file.is_object()) return {};
    for (const auto& [key, value] : file.items()) {
      if (!key.ends_with("_token") || is_standard_name(key) || !is_token(value)) continue;
      if (Status status = add(key, json(value)); !status.ok()) return status;
    }
    return {};
  }

  // extra_special_tokens as an object, name to token.
  Status add_extras(const ordered_json& file) {
    if (!file.is_object() || !file.contains("extra_special_tokens")) return {};
    const ordered_json& extras = file.at("extra_special_tokens");
    if (!extras.is_object()) return {};
    for (const auto& [key, value] : extras.items()) {
      Status status = add(key, json(value));
      if (!status.ok()) return status.with_context("extra_special_tokens");
    }
    return {};
  }

  std::vector<NamedSpecialToken> take() { return std::move(named_); }

 private:
  std::vector<NamedSpecialToken> named_;
};

void append(const json* list, std::vector<json>& all) {
  if (list == nullptr || !list->is_array()) return;
  for (const json& entry : *list) {
    if (std::find(all.begin(), all.end(), entry) == all.end()) all.push_back(entry);
  }
}

}  // namespace

Result<std::vector<NamedSpecialToken>> named_special_tokens(
    const SlowTokenizerFiles& files, std::span<const SpecialTokenDefault> defaults) {
  NamedTokens named;
  for (const char* name : kSpecialTokenNames) {
    const json* value = said_of(files, name);
    json standard;
    const auto known = std::find_if(defaults.begin(), defaults.end(), [name](const auto& one) {
      return std::string_view(one.name) == name;
    });
    if (value == nullptr && known != defaults.end()) value = &(standard = std::string(known->text));
    if (value == nullptr || value->is_null() || value->is_boolean()) continue;
    if (Status status = named.add(name, *value); !status.ok()) return status;
  }
  Status status = heeds_map(files) ? named.add_own(files.ordered_map) : Status();
  if (status.ok()) status = named.add_own(files.ordered_config);
  if (status.ok()) status = named.add_extras(files.ordered_config);
  if (status.ok() && heeds_map(files)) status = named.add_extras(files.ordered_map);
  if (!status.ok()) return status;
  return named.take();
}

Result<std::vector<AddedToken>> extra_special_tokens(const SlowTokenizerFiles& files) {
  const json* extra = json_member(files.config, "extra_special_tokens");
  const json* additional = json_member(files.config, "additional_special_tokens");
  std::vector<json> all;
  append(extra != nullptr && !extra->empty() ? extra : additional, all);
  if (heeds_map(files)) {
    append(json_member(files.map, "extra_special_tokens"), all);
    if (extra == nullptr && additional == nullptr)
      append(json_member(files.map, "additional_special_tokens"), all);
  }
  std::vector<AddedToken> tokens;
  for (const json& entry : all) {
    auto token = added_token_from_json(entry, true);
    if (!token.ok()) return token.status().with_context("additional_special_tokens");
    tokens.push_back(std::move(*token));
  }
  return tokens;
}

bool denies_special_token(const SlowTokenizerFiles& files, const char* name) {
  const json* value = said_of(files, name);
  return value != nullptr && value->is_null();
}

}  // namespace rl
