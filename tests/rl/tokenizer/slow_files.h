// Files next to a vocabulary, from the text that they would have.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "rl/tokenizer/vocabulary_files.h"

namespace rl::testing {

/// An empty text: there is no such file. Texts that are no JSON throw.
struct SlowFileTexts {
  std::string_view config = {};  // tokenizer_config.json
  std::string_view map = {};     // special_tokens_map.json
  std::string_view added = {};   // added_tokens.json
};

inline SlowTokenizerFiles slow_files(const SlowFileTexts& texts) {
  SlowTokenizerFiles files;
  if (!texts.config.empty()) {
    files.config = nlohmann::json::parse(texts.config);
    files.ordered_config = nlohmann::ordered_json::parse(texts.config);
  }
  if (!texts.map.empty()) {
    files.map = nlohmann::json::parse(texts.map);
    files.ordered_map = nlohmann::ordered_json::parse(texts.map);
  }
  if (!texts.added.empty()) files.added = nlohmann::json::parse(texts.added);
  return files;
}

}  // namespace rl::testing
