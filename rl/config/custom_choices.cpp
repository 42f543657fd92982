#include "rl/config/custom_choices.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "rl/config/judge.h"
#include "rl/config/keys.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

struct Added {
  std::map<std::string, std::vector<std::string>, std::less<>> choices;
  std::set<std::string, std::less<>> keys;
};

Added& added() {
  static Added all;
  return all;
}

void check(bool holds, const std::string& what) {
  if (!holds) runtime::check_failed(__FILE__, __LINE__, what);
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_name(std::string_view text) {
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-';
         });
}

}  // namespace

void add_choice(std::string_view key, std::string_view value) {
  const std::string name(value);
  check(is_name(value), "\"" + name + "\" is not a name: letters, digits, _ and -, a letter first");
  const KeyInfo* info = find_key(key);
  check(info != nullptr && info->key == key && info->support == KeySupport::kSupported &&
            !info->allowed.empty(),
        std::string(key) + " has no list of values");
  check(judge_key(*info, key, name, nullptr).verdict != Judgement::Verdict::kUsed,
        std::string(key) + " takes \"" + name + "\" already: choose another name");
  added().choices[std::string(key)].push_back(name);
}

const std::vector<std::string>& added_choices(std::string_view key) {
  static const std::vector<std::string> none;
  const auto found = added().choices.find(key);
  return found == added().choices.end() ? none : found->second;
}

void add_key(std::string_view key) {
  check(is_name(key.substr(key.rfind('.') + 1)),
        std::string(key) + " does not end in a name: letters, digits, _ and -, a letter first");
  check(find_key(key) == nullptr, std::string(key) + " is a key already: choose another name");
  added().keys.emplace(key);
}

bool is_added_key(std::string_view key) { return added().keys.contains(key); }

}  // namespace rl
