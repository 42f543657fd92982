#include "rl/tokenizer/added_tokens.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "rl/tokenizer/json_fields.h"
#include "rl/tokenizer/unicode_text.h"

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

namespace {

constexpr std::int64_t kIdMax = 1 << 24;  // far above any vocabulary; keeps the tables by id small

bool inside_word(std::string_view text, std::size_t begin, std::size_t end) {
  std::size_t before = begin;
  if (before > 0 && is_word_character(previous_code_point(text, before))) return true;
  return end < text.size() && is_word_character(next_code_point(text, end));
}

std::size_t back_over_spaces(std::string_view text, std::size_t begin, std::size_t limit) {
  while (begin > limit) {
    std::size_t previous = begin;
    if (!is_white_space(previous_code_point(text, previous))) break;
    begin = previous;
  }
  return begin;
}

std::size_t over_spaces(std::string_view text, std::size_t end) {
  while (end < text.size()) {
    std::size_t next = end;
    if (!is_white_space(next_code_point(text, next))) break;
    end = next;
  }
  return end;
}

}  // namespace

Result<AddedTokens> AddedTokens::make(std::vector<AddedToken> tokens,
                                      const Normalizer* normalizer) {
  AddedTokens added;
  added.tokens_ = std::move(tokens);
  std::vector<std::string> contents;  // normalized; the keys below are views of it
  contents.reserve(added.tokens_.size());
  std::vector<std::pair<std::string_view, std::int32_t>> original;
  std::vector<std::pair<std::string_view, std::int32_t>> normalized;
  RegexScratch scratch;
  for (std::size_t i = 0; i < added.tokens_.size(); ++i) {
    const AddedToken& token = added.tokens_[i];
    added.by_id_[token.id] = i;
    added.by_content_[token.content] = i;
    added.tokens_[i].shown = token.silent ? "" : token.content;
    if (!token.in_text) continue;
    if (!token.normalized) {
      original.emplace_back(token.content, static_cast<std::int32_t>(i));
      continue;
    }
    contents.push_back(token.content);
    if (normalizer != nullptr) {
      Status status = normalizer->apply(contents.back(), scratch);
      if (!status.ok()) return status.with_context("added token " + token.content);
      if (!token.silent) added.tokens_[i].shown = contents.back();
    }
    normalized.emplace_back(contents.back(), static_cast<std::int32_t>(i));
  }
  added.original_ = ByteTrie(std::move(original));
  added.normalized_ = ByteTrie(std::move(normalized));
  return added;
}

void AddedTokens::split(const ByteTrie& trie, std::string_view text,
                        std::vector<Segment>& segments) const {
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size() && !trie.empty();) {
    std::size_t length = 0;
    std::int32_t found = -1;
    if (trie.starts(text[at])) {
      trie.prefixes(text.substr(at), [&](std::size_t key_length, std::int32_t value) {
        length = key_length;
        found = value;
      });
    }
    if (found < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<std::size_t>(found)];
    std::size_t begin = at;
    std::size_t end = at + length;
    at = end;
    if (token.single_word && inside_word(text, begin, end)) continue;
    // What the token before took to its right is still searched: a token of white space there is
    // found again, as in Hugging Face's tokenizers.
    if (token.strip_left)
      begin = std::max(back_over_spaces(text, begin, std::min(begin, done)), done);
    if (token.strip_right) end = over_spaces(text, end);
    if (begin >= end) continue;
    if (begin > done) segments.push_back({text.substr(done, begin - done), -1});
    segments.push_back({text.substr(begin, end - begin), token.id});
    done = end;
  }
  if (done < text.size()) segments.push_back({text.substr(done), -1});
}

const AddedToken* AddedTokens::find(std::int32_t id) const {
  auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  auto found = by_content_.find(std::string(content));
  return found == by_content_.end() ? nullptr : &tokens_[found->second];
}

Result<AddedToken> added_token_from_json(const json& entry, bool special_otherwise) {
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

Result<std::vector<AddedToken>> added_tokens_from_json(const json& tokenizer) {
  std::vector<AddedToken> tokens;
  if (json_member(tokenizer, "added_tokens") == nullptr) return tokens;
  auto list = json_array(tokenizer, "added_tokens");
  if (!list.ok()) return list.status();
  for (const json& entry : **list) {
    const std::string where = "added_tokens[" + std::to_string(tokens.size()) + "]";
    auto id = json_integer(entry, "id");
    if (!id.ok()) return id.status().with_context(where);
    auto token = added_token_from_json(entry, false);
    if (!token.ok()) return token.status().with_context(where);
    if (*id < 0 || *id > kIdMax)
      return runtime::invalid_argument(where + ": id " + std::to_string(*id) + " is out of range");
    token->id = static_cast<std::int32_t>(*id);
    tokens.push_back(*std::move(token));
  }
  return tokens;
}

}  // namespace rl
