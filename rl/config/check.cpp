#include "rl/config/check.h"

#include <algorithm>

#include "rl/config/config_builder.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using Verdict = Judgement::Verdict;

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kUsed: return "used";
    case Verdict::kNoEffect: return "no_effect";
    case Verdict::kRefused: return "refused";
    case Verdict::kInvalid: return "invalid";
  }
  return "";
}

bool is_wrong(const KeyCheck& key) {
  return key.verdict == Verdict::kRefused || key.verdict == Verdict::kInvalid;
}

/// "key = value", and the key's name here where it was named otherwise.
std::string show_key(const KeyCheck& key) {
  if (key.value.is_null()) return key.written;
  const std::string value = key.value.is_string() ? key.value.get<std::string>() : key.value.dump();
  return key.written + " = " + value + (key.written == key.key ? "" : "  (" + key.key + ")");
}

template <class Predicate>
void append(std::string& text, const ConfigCheck& check, const char* title, Predicate wanted) {
  bool first = true;
  for (const KeyCheck& key : check.keys) {
    if (!wanted(key)) continue;
    if (first) text += std::string(title) + "\n";
    first = false;
    text += is_wrong(key) ? "  " + key.meaning + "\n"
                          : "  " + show_key(key) + ": " + key.meaning + "\n";
  }
}

std::string keys(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " key" : " keys");
}

}  // namespace

std::size_t ConfigCheck::count(Verdict verdict) const {
  return std::count_if(keys.begin(), keys.end(),
                       [&](const KeyCheck& key) { return key.verdict == verdict; });
}

bool ConfigCheck::passes() const { return std::none_of(keys.begin(), keys.end(), is_wrong); }

runtime::Result<ConfigCheck> check_config(const ConfigSources& sources) {
  ConfigBuilder builder(sources.keys == nullptr ? train_keys() : *sources.keys);
  if (sources.file) {
    if (const runtime::Status status = builder.add_file(*sources.file); !status.ok()) return status;
  }
  for (const std::string& text : sources.overrides) builder.add_override(text);
  return builder.check();
}

std::string meaning_of(const KeyInfo& info, const KeyTable& keys) {
  if (info.support != KeySupport::kSupported) return "this is how it is here anyway";
  const std::string_view description = keys.description(info.key);
  return description.empty() ? "used" : std::string(description);
}

std::string to_text(const ConfigCheck& check) {
  std::string text;
  append(text, check, "refused:", is_wrong);
  append(text, check,
         "no effect here:", [](const KeyCheck& key) { return key.verdict == Verdict::kNoEffect; });
  append(text, check, "used:", [](const KeyCheck& key) { return key.verdict == Verdict::kUsed; });
  for (const std::string& note : check.notes) text += "note: " + note + "\n";
  const std::size_t wrong = check.count(Verdict::kRefused) + check.count(Verdict::kInvalid);
  return text + keys(check.keys.size()) + ": " + std::to_string(check.count(Verdict::kUsed)) +
         " used, " + std::to_string(check.count(Verdict::kNoEffect)) + " without effect, " +
         std::to_string(wrong) + " refused\n";
}

ordered_json to_json(const ConfigCheck& check) {
  ordered_json list = ordered_json::array();
  for (const KeyCheck& key : check.keys) {
    list.push_back({{"written", key.written},
                    {"key", key.key},
                    {"value", key.value},
                    {"origin", key.origin},
                    {"verdict", name_of(key.verdict)},
                    {"meaning", key.meaning}});
  }
  return {{"passes", check.passes()},
          {"used", check.count(Verdict::kUsed)},
          {"no_effect", check.count(Verdict::kNoEffect)},
          {"refused", check.count(Verdict::kRefused)},
          {"invalid", check.count(Verdict::kInvalid)},
          {"notes", check.notes},
          {"keys", std::move(list)}};
}

}  // namespace rl
