#include "rl/reward/search_answer.h"

#include <cctype>
#include <nlohmann/json.hpp>

#include "rl/reward/listed_answers.h"
#include "rl/template/python_string.h"
#include "runtime/core/json.h"

namespace rl {
namespace {

constexpr std::string_view kRule = "search_qa";

bool is_ascii_punctuation(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x80 && std::ispunct(byte) != 0;
}

bool is_article(std::string_view word) { return word == "a" || word == "an" || word == "the"; }

std::string without_punctuation(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (!is_ascii_punctuation(c)) out += c;
  }
  return out;
}

/// Articles end where letters and numbers end: in "l’a" there is one.
std::string without_articles(std::string_view text) {
  std::string out, word;
  const auto end_word = [&] {
    out += is_article(word) ? " " : word;
    word.clear();
  };
  for (const std::string_view character : split_characters(text)) {
    if (is_word_character(character)) {
      word += character;
      continue;
    }
    end_word();
    out += character;
  }
  end_word();
  return out;
}

}  // namespace

std::optional<std::string_view> tagged_answer(std::string_view response) {
  constexpr std::string_view kOpen = "<answer>", kClose = "</answer>";
  const std::size_t close = response.rfind(kClose);
  const std::size_t open = close == response.npos ? close : response.rfind(kOpen, close);
  if (open == response.npos) return std::nullopt;
  return response.substr(open + kOpen.size(), close - open - kOpen.size());
}

std::string plain_words(std::string_view text) {
  const std::string words = without_articles(without_punctuation(to_lower(text)));
  std::string out;
  bool blank = false;
  for (const std::string_view character : split_characters(words)) {
    if (is_blank_character(character)) {
      blank = !out.empty();
      continue;
    }
    if (blank) out += ' ';
    blank = false;
    out += character;
  }
  return out;
}

runtime::Result<std::vector<std::string>> targets_of(std::string_view ground_truth) {
  using nlohmann::ordered_json;
  ordered_json tree = runtime::parse_json<ordered_json>(ground_truth);
  if (tree.is_array()) return listed_answers(kRule, tree);
  if (!tree.is_object() || !tree.contains("target"))
    return std::vector{tree.is_string() ? tree.get<std::string>() : std::string(ground_truth)};
  const ordered_json& target = tree.at("target");
  return listed_answers(kRule, target.is_array() ? target : ordered_json::array({target}));
}

}  // namespace rl
