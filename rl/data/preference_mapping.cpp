#include "rl/data/preference_mapping.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "rl/config/judge.h"
#include "rl/data/chat_columns.h"
#include "rl/data/chat_messages.h"
#include "rl/data/json_text.h"
#include "rl/data/row_mapping.h"
#include "runtime/core/json.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::json_member;
using runtime::Result;
using runtime::Status;

Result<const ordered_json*> column(const RawRow& row, const std::string& key,
                                   const std::string& setting) {
  if (const ordered_json* value = json_member(row.value, key)) return value;
  if (row.value.contains(key))
    return invalid_argument(row.where + ": '" + key + "' (" + setting + ") is null");
  return invalid_argument(row.where + ": no key '" + key + "' (" + setting + "); it has " +
                          list_json_keys(row.value));
}

/// A response as it is stored: a text, or messages with roles.
Result<ordered_json> read_preferred_response(const RawRow& row, const std::string& key,
                                             const std::string& setting) {
  const Result<const ordered_json*> stored = column(row, key, setting);
  if (!stored.ok()) return stored.status();
  ordered_json response = **stored;
  if (response.is_string()) return response;
  if (!response.is_array())
    return invalid_argument(row.where + ": '" + key +
                            "' must be a text or a list of messages, it is " +
                            json_type_name(response));
  if (const Status status = normalise_messages(response, row.where + ": '" + key + "'");
      !status.ok())
    return status;
  return response;
}

bool begins_with_prompt(const ordered_json& messages) {
  return messages.is_array() && messages.front().at("role") != "assistant";
}

/// How many messages both lists begin with, leaving each at least one.
std::size_t shared_messages(const ordered_json& a, const ordered_json& b) {
  const std::size_t most = std::min(a.size(), b.size()) - 1;
  std::size_t count = 0;
  while (count < most && a[count] == b[count]) ++count;
  while (count > 0 && a[count].at("role") != "assistant")
    --count;  // what follows is to be the assistant's
  return count;
}

/// The text that both begin with: not half a character, and no space behind, which belongs to the
/// word after it.
std::string shared_text(const std::string& a, const std::string& b) {
  auto end = static_cast<std::size_t>(
      std::mismatch(a.begin(),
                    a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())),
                    b.begin())
          .first -
      a.begin());
  while (end > 0 && end < a.size() && (static_cast<unsigned char>(a[end]) & 0xC0) == 0x80) --end;
  if (end > 0 && a[end - 1] == ' ') --end;
  return a.substr(0, end);
}

/// The prompt that responses bring themselves; null where they bring none.
ordered_json own_prompt(const RawRow& row, const RowMapping& mapping, const ordered_json& chosen,
                        const ordered_json& rejected) {
  const bool has_prompt =
      !mapping.prompt_template.empty() || json_member(row.value, mapping.prompt) != nullptr;
  if (begins_with_prompt(chosen)) {
    if (rejected.is_array()) return first_messages(chosen, shared_messages(chosen, rejected));
    std::size_t count = chosen.size();  // up to the last turn of the assistant
    while (count > 0 && chosen[count - 1].at("role") == "assistant") --count;
    return first_messages(chosen, count);
  }
  if (!has_prompt && chosen.is_string() && rejected.is_string())
    return shared_text(chosen, rejected);
  return nullptr;
}

/// What follows the prompt: texts, and of messages one of the assistant alone as its text.
Status take_prompt_away(const RawRow& row, const std::string& key, const ordered_json& prompt,
                        ordered_json& response) {
  const std::string at = row.where + ": '" + key + "'";
  if (response.is_string()) {
    if (prompt.is_string())
      response = response.get<std::string>().substr(prompt.get<std::string>().size());
  } else {
    for (std::size_t i = 0; i < prompt.size(); ++i) {
      if (response.size() > i + 1 && response[i] == prompt[i]) continue;
      return invalid_argument(at + ": message " + std::to_string(i + 1) +
                              " is not the prompt's: both responses must follow the same messages");
    }
    response.erase(response.begin(), response.begin() + static_cast<std::ptrdiff_t>(prompt.size()));
    const ordered_json& first = response.front();
    if (first.at("role") != "assistant")
      return invalid_argument(
          at + ": the first message behind the prompt must be the assistant's, it is of '" +
          first.at("role").get<std::string>() + "'");
    if (response.size() == 1 && first.contains("content") && first.at("content").is_string() &&
        !first.contains("tool_calls") &&
        is_empty_value(first.value("reasoning_content", ordered_json())))
      response = ordered_json(first.at("content"));
  }
  if (response.is_string() && response.get<std::string>().empty())
    return invalid_argument(at + " is empty");
  return Status();
}

/// Whether the row's own prompt is the one that its responses follow.
Status check_prompt(const RawRow& row, const RowMapping& mapping, const ordered_json& own) {
  const ordered_json* stored =
      mapping.prompt_template.empty() ? json_member(row.value, mapping.prompt) : nullptr;
  if (stored == nullptr || !own.is_array() || own.empty()) return Status();
  ordered_json messages = *stored;
  if (messages.is_array()) {
    if (const Status status =
            normalise_messages(messages, row.where + ": '" + mapping.prompt + "'");
        !status.ok())
      return status;
    // Responses may have more in common than the prompt.
    if (messages.size() <= own.size() && std::equal(messages.begin(), messages.end(), own.begin()))
      return Status();
  } else {
    for (const ordered_json& message : own) {
      if (message.value("content", ordered_json()) == messages) return Status();
    }
  }
  return invalid_argument(row.where + ": the messages of the response do not begin with '" +
                          mapping.prompt + "': leave the prompt out of them, or leave '" +
                          mapping.prompt + "' out");
}

Result<double> number(const RawRow& row, const std::string& key) {
  const ordered_json& value = row.value.at(key);
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    return invalid_argument(row.where + ": '" + key + "' must be a number, it is " +
                            json_type_name(value));
  if (std::abs(value.get<double>()) > std::numeric_limits<float>::max())
    return invalid_argument(row.where + ": '" + key +
                            "' is beyond single precision: " + value.dump());
  return value.get<double>();
}

Result<double> read_margin(const RawRow& row, const PreferenceMapping& mapping) {
  if (!mapping.margin.empty()) {
    const Result<const ordered_json*> stored = column(row, mapping.margin, "data.columns.margin");
    if (!stored.ok()) return stored.status();
    return number(row, mapping.margin);
  }
  if (json_member(row.value, "margin") != nullptr) return number(row, "margin");
  for (const auto& [chosen, rejected] :
       {std::pair<std::string, std::string>("chosen_score", "rejected_score"),
        {"score_chosen", "score_rejected"}}) {
    const bool both =
        json_member(row.value, chosen) != nullptr && json_member(row.value, rejected) != nullptr;
    if (!both && (json_member(row.value, chosen) != nullptr ||
                  json_member(row.value, rejected) != nullptr)) {
      return invalid_argument(row.where + ": '" + chosen + "' and '" + rejected +
                              "' are needed both, or none");
    }
    if (!both) continue;
    const Result<double> of_chosen = number(row, chosen);
    const Result<double> of_rejected = number(row, rejected);
    if (!of_chosen.ok()) return of_chosen;
    if (!of_rejected.ok()) return of_rejected;
    return *of_chosen - *of_rejected;
  }
  return 0.0;
}

Result<bool> read_label(const RawRow& row, const std::string& key) {
  const Result<const ordered_json*> stored = column(row, key, "data.columns.label");
  if (!stored.ok()) return stored.status();
  const ordered_json& value = **stored;
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer() && (value == 0 || value == 1)) return value == 1;
  return invalid_argument(
      row.where + ": '" + key +
      "' must be true or false (or 1 or 0): whether the response is wanted; it is " + value.dump());
}

/// The prompt alone, as any other row has it.
Result<DataRow> map_prompt(const RawRow& row, const RowMapping& mapping, const ordered_json& own) {
  RowMapping plain = mapping;
  plain.preference.reset();
  plain.answer.clear();
  plain.answer_after.clear();
  RawRow patched{.value = row.value, .where = row.where};
  patched.value.erase("response");  // no demonstration
  if (!own.is_null()) {
    plain.prompt_template.clear();
    patched.value[plain.prompt] = own;
  } else if (patched.value.contains(plain.prompt) && patched.value.at(plain.prompt) == "" &&
             plain.prompt_template.empty()) {
    return invalid_argument(row.where + ": '" + plain.prompt + "' is empty");
  }
  return map_row(patched, plain);
}

}  // namespace

Result<PreferenceMapping> PreferenceMapping::from_config(const Config& config,
                                                         PreferenceForm form) {
  ConfigReader read(config);
  PreferenceMapping mapping;
  mapping.form = form;
  const auto name = [&](const char* key, std::string& into) {
    into = read.find_string(std::string("data.columns.") + key).value_or(into);
  };
  name("chosen", mapping.chosen);
  name("rejected", mapping.rejected);
  if (form == PreferenceForm::kPairs) name("margin", mapping.margin);
  if (form == PreferenceForm::kSingles) {
    name("completion", mapping.completion);
    name("label", mapping.label);
  }
  if (!read.status().ok()) return read.status();
  return mapping;
}

Result<DataRow> map_preference(const RawRow& row, const RowMapping& mapping) {
  const PreferenceMapping& columns = *mapping.preference;
  const bool single =
      columns.form == PreferenceForm::kSingles &&
      (row.value.contains(columns.completion) || !row.value.contains(columns.chosen));
  const std::string chosen_key = single ? columns.completion : columns.chosen;
  Preference preference;
  Result<ordered_json> chosen = read_preferred_response(
      row, chosen_key, single ? "data.columns.completion" : "data.columns.chosen");
  if (!chosen.ok()) return chosen.status();
  preference.chosen = std::move(*chosen);
  if (single) {
    const Result<bool> label = read_label(row, columns.label);
    if (!label.ok()) return label.status();
    preference.wanted = *label;
  } else {
    Result<ordered_json> rejected =
        read_preferred_response(row, columns.rejected, "data.columns.rejected");
    if (!rejected.ok()) return rejected.status();
    preference.rejected = std::move(*rejected);
    if (preference.chosen.is_array() != preference.rejected.is_array())
      return invalid_argument(row.where + ": '" + columns.chosen + "' and '" + columns.rejected +
                              "' must both be texts, or both lists of messages");
    if (preference.chosen == preference.rejected)
      return invalid_argument(row.where + ": '" + columns.chosen + "' and '" + columns.rejected +
                              "' are equal: there is nothing to prefer");
    const Result<double> margin = read_margin(row, columns);
    if (!margin.ok()) return margin.status();
    preference.margin = *margin;
  }
  const ordered_json own = own_prompt(row, mapping, preference.chosen, preference.rejected);
  if (own.is_array() ? own.empty() : own == "")
    return invalid_argument(row.where + ": '" + columns.chosen + "' and '" + columns.rejected +
                            "' begin with nothing in common, and there is no '" + mapping.prompt +
                            "' (data.prompt_key)");
  Status status = check_prompt(row, mapping, own);
  if (!status.ok()) return status;
  Result<DataRow> into = map_prompt(row, mapping, own);
  if (!into.ok()) return into;
  const ordered_json away = own.is_null() ? ordered_json::array() : own;
  status = take_prompt_away(row, chosen_key, away, preference.chosen);
  if (status.ok() && !single)
    status = take_prompt_away(row, columns.rejected, away, preference.rejected);
  if (!status.ok()) return status;
  // Messages follow messages.
  if (!into->is_chat() &&
      (preference.chosen.is_array() || (own.is_null() && row.value.at(chosen_key).is_array()))) {
    if (mapping.prompt_form == RowMapping::PromptForm::kPlain)
      return invalid_argument(row.where + ": '" + chosen_key +
                              "' is a list of messages, and data.prompt_form is plain");
    into->prompt =
        ordered_json::array({ordered_json({{"role", "user"}, {"content", into->prompt}})});
    if (status = add_chat_columns(row, mapping, *into); !status.ok()) return status;
  }
  into->preference = std::move(preference);
  return into;
}

}  // namespace rl
