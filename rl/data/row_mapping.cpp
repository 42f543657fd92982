#include "rl/data/row_mapping.h"

#include <algorithm>
#include <array>
#include <utility>

#include "rl/config/judge.h"
#include "rl/data/chat_columns.h"
#include "rl/data/chat_messages.h"
#include "rl/data/json_text.h"
#include "runtime/core/json.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::json_member;
using runtime::Result;
using runtime::Status;

Status no_column(const RawRow& row, const std::string& key, const std::string& setting) {
  const bool is_null = row.value.contains(key);
  return invalid_argument(row.where + (is_null ? ": '" + key + "' (" + setting + ") is null"
                                               : ": no key '" + key + "' (" + setting +
                                                     "); it has " + list_json_keys(row.value)));
}

constexpr std::array kMediaKeys = {"data.image_key", "data.video_key",
                                   "data.audio_key"};  // of RowMapping::media, in its order

// Left out without a word, they would leave a question about nothing.
Status check_text_alone(const RawRow& row, const RowMapping& mapping) {
  for (const std::string& column : mapping.media) {
    const ordered_json* value = column.empty() ? nullptr : json_member(row.value, column);
    if (value == nullptr || is_empty_value(*value)) continue;
    return runtime::unimplemented(row.where + ": it has '" + column +
                                  "', and only text is read: take rows without, or train on their "
                                  "text alone by data.image_key=null (video_key, audio_key)");
  }
  return Status();
}

/// A column of nulls is not there: files of several sources have the columns of all.
const ordered_json* find_answer(const ordered_json& row) {
  const ordered_json* model = json_member(row, "reward_model");
  if (model != nullptr && model->is_object()) {
    if (const ordered_json* truth = json_member(*model, "ground_truth")) return truth;
  }
  for (const char* key : {"ground_truth", "answer", "solution", "target"}) {
    if (const ordered_json* answer = json_member(row, key)) return answer;
  }
  return nullptr;
}

/// The keys, with those whose value is null apart: "'prompt' (and null in 'answer')".
std::string list_columns(const ordered_json& row) {
  ordered_json filled = ordered_json::object(), null = ordered_json::object();
  for (const auto& [key, value] : row.items()) (value.is_null() ? null : filled)[key] = nullptr;
  std::string text = list_json_keys(filled);
  if (!null.empty()) text += " (and null in " + list_json_keys(null) + ")";
  return text;
}

/// What follows the last data.answer_after of the answer, without blanks around it.
Status cut_answer(const RawRow& row, const RowMapping& mapping, DataRow& into) {
  std::string& truth = into.ground_truth;
  if (into.ground_truth_is_json)
    return invalid_argument(row.where + ": the answer must be a text (data.answer_after), it is " +
                            excerpt(truth, 80));
  const std::size_t mark = truth.rfind(mapping.answer_after);
  if (mark == std::string::npos)
    return invalid_argument(row.where + ": the answer has no '" + mapping.answer_after +
                            "' (data.answer_after)");
  truth.erase(0, mark + mapping.answer_after.size());
  truth.erase(0, truth.find_first_not_of(" \t\r\n"));
  truth.erase(truth.find_last_not_of(" \t\r\n") + 1);
  return Status();
}

/// The answer, or where no column is one the columns that there are.
Status read_ground_truth(const RawRow& row, const RowMapping& mapping, DataRow& into) {
  const ordered_json* answer =
      mapping.answer.empty() ? find_answer(row.value) : json_member(row.value, mapping.answer);
  if (answer == nullptr && !mapping.answer.empty())
    return no_column(row, mapping.answer, "data.columns.answer");
  if (answer != nullptr) {
    into.ground_truth = json_as_text(*answer);
    into.ground_truth_is_json = answer->is_structured() || answer->is_boolean();
  } else {
    into.answerless = list_columns(row.value);
  }
  return mapping.answer_after.empty() ? Status() : cut_answer(row, mapping, into);
}

/// Goes down from a column by `path`; null and what is not there are errors. Returns nullptr and
/// sets `status` then.
const ordered_json* descend(const ordered_json* at, const std::vector<std::string>& path,
                            const std::string& name, Status& status) {
  std::string so_far = name;
  for (const std::string& key : path) {
    const ordered_json* next = json_member(*at, key);
    if (next == nullptr) {
      status = invalid_argument(
          so_far + (at->is_object()
                        ? " has no '" + key + "'; it has " + list_json_keys(*at)
                        : " must be an object with '" + key + "', it is " + json_type_name(*at)));
      return nullptr;
    }
    so_far += "." + key;
    at = next;
  }
  return at;
}

/// OpenAI's `weight` of an answer: 0 is read and not learned.
Status check_message_weights(const ordered_json& messages, const std::string& at) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto weight = messages[i].find("weight");
    if (weight == messages[i].end() || weight->is_null() || *weight == 0 || *weight == 1) continue;
    return invalid_argument(at + ": message " + std::to_string(i + 1) +
                            ": 'weight' must be 1 (learned) or 0 (not learned), it is " +
                            excerpt(json_as_text(*weight), 40));
  }
  return Status();
}

/// A row that is a conversation as a whole.
Result<DataRow> map_conversation(const RawRow& row, const RowMapping& mapping,
                                 const ordered_json& messages) {
  const std::string at = row.where + ": '" + mapping.messages + "' (data.messages_key)";
  if (!messages.is_array())
    return invalid_argument(at + " must be a list of messages, it is " + json_type_name(messages));
  DataRow into;
  into.where = row.where;
  into.prompt = messages;
  if (const Status status = normalise_messages(into.prompt, at); !status.ok()) return status;
  const bool answered =
      std::any_of(into.prompt.begin(), into.prompt.end(),
                  [](const ordered_json& message) { return message.at("role") == "assistant"; });
  if (!answered) return invalid_argument(at + " has no message of the assistant to learn from");
  Status status = check_message_weights(into.prompt, at);
  if (status.ok()) status = add_system_message(row, mapping, mapping.messages, into.prompt);
  if (!status.ok()) return status;
  if (const ordered_json* thinking =
          mapping.thinking.empty() ? nullptr : json_member(row.value, mapping.thinking))
    into.extra["enable_thinking"] = *thinking;
  status = read_row_tools(row, mapping, into);
  if (!status.ok()) return status;
  return into;
}

/// The prompt, and where the row is a conversation its response.
Status read_prompt(const RawRow& row, const RowMapping& mapping, DataRow& into) {
  if (!mapping.prompt_template.empty()) {
    Result<std::string> text = fill_template(mapping.prompt_template, row.value, row.where);
    if (!text.ok()) return text.status();
    into.prompt = std::move(*text);
    return Status();
  }
  const ordered_json* column = json_member(row.value, mapping.prompt);
  if (column == nullptr)
    return no_column(row, mapping.prompt,
                     mapping.messages.empty() ? "data.prompt_key"
                                              : "data.prompt_key), and no conversation '" +
                                                    mapping.messages + "' (data.messages_key");
  const std::string at = row.where + ": '" + mapping.prompt + "'";
  Status found;
  column = descend(column, mapping.prompt_path, at, found);
  if (column == nullptr) return found;
  into.prompt = *column;
  if (into.prompt.is_array()) {
    const Status status = normalise_messages(into.prompt, at);
    if (!status.ok()) return status;
  } else if (!into.prompt.is_string()) {
    return invalid_argument(at + " must be a text or a list of messages, it is " +
                            json_type_name(into.prompt));
  }
  if (mapping.conversations != RowMapping::Conversations::kMessages) return Status();
  if (!into.prompt.is_array())
    return invalid_argument(at +
                            " must be a list of messages (data.conversations=messages), it is " +
                            json_type_name(into.prompt));
  const ordered_json& last = into.prompt.back();
  if (last.at("role") != "assistant" || into.prompt.size() < 2)
    return invalid_argument(
        at +
        ": the last of two or more messages must be the assistant's (data.conversations=messages)");
  if (!last.contains("content") || !last.at("content").is_string())
    return invalid_argument(at + ": the last message's 'content' must be a text");
  into.response = last.at("content").get<std::string>();
  into.prompt.erase(into.prompt.size() - 1);
  return Status();
}

Status set_form(const RawRow& row, const RowMapping& mapping, DataRow& into) {
  if (mapping.prompt_form == RowMapping::PromptForm::kChat && !into.is_chat()) {
    const ordered_json message = {{"role", "user"}, {"content", into.prompt}};
    into.prompt = ordered_json::array();
    into.prompt.push_back(message);
  }
  if (mapping.prompt_form == RowMapping::PromptForm::kPlain && into.is_chat()) {
    return invalid_argument(row.where + ": '" + mapping.prompt +
                            "' is a list of messages, and data.prompt_form is plain: use "
                            "data.prompt_template with a column that is a text");
  }
  if (!mapping.system_prompt.empty() && !into.is_chat())
    return invalid_argument(row.where +
                            ": data.system_prompt needs a chat: set data.prompt_form=chat");
  return Status();
}

/// What judges a response.
Status read_judging(const RawRow& row, const RowMapping& mapping, DataRow& into) {
  if (const Status status = read_ground_truth(row, mapping, into); !status.ok()) return status;
  if (const ordered_json* source = json_member(row.value, mapping.data_source))
    into.data_source = json_as_text(*source);
  if (const ordered_json* teacher =
          mapping.teacher.empty() ? nullptr : json_member(row.value, mapping.teacher))
    into.teacher = json_as_text(*teacher);
  if (const ordered_json* extra = json_member(row.value, "extra_info")) into.extra = *extra;
  const ordered_json* difficulty = json_member(row.value, "difficulty");
  if (difficulty == nullptr) difficulty = json_member(into.extra, "difficulty");
  if (difficulty != nullptr && difficulty->is_number()) into.difficulty = difficulty->get<double>();
  if (const ordered_json* agent = json_member(row.value, "agent_name");
      agent != nullptr && agent->is_string())
    into.agent_name = agent->get<std::string>();
  return Status();
}

/// A response that the row has.
Status read_response(const RawRow& row, const RowMapping& mapping, DataRow& into) {
  const std::string key = mapping.response.empty() ? "response" : mapping.response;
  const ordered_json* response = json_member(row.value, key);
  if (response == nullptr && mapping.response.empty()) return Status();
  if (response == nullptr)
    return no_column(row, mapping.response,
                     mapping.messages.empty() ? "data.columns.response" : "data.response_key");
  const std::string at = row.where + ": '" + key + "'";
  Status status;
  response = descend(response, mapping.response_path, at, status);
  if (response == nullptr) return status;
  if (!response->is_string())
    return invalid_argument(at + " must be a text, it is " + json_type_name(*response));
  into.response = response->get<std::string>();
  return Status();
}

}  // namespace

Result<std::string> fill_template(std::string_view text, const ordered_json& row,
                                  const std::string& where) {
  const std::string at = where + ": data.prompt_template: ";
  std::string filled;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char after = i + 1 < text.size() ? text[i + 1] : '\0';
    if (c == '\\' && (after == 'n' || after == 't' || after == '\\')) {
      filled += after == 'n' ? '\n' : after == 't' ? '\t' : '\\';
      ++i;
    } else if ((c == '{' || c == '}') && after == c) {
      filled += c;
      ++i;
    } else if (c == '}') {
      return invalid_argument(at + "a '}' without its '{': write '}}' for a brace");
    } else if (c == '{') {
      const std::size_t end = text.find('}', i);
      if (end == std::string_view::npos)
        return invalid_argument(at + "a '{' without its '}': write '{{' for a brace");
      const std::string name(text.substr(i + 1, end - i - 1));
      const ordered_json* column = json_member(row, name);
      if (column == nullptr)
        return invalid_argument(at + "no key '" + name + "'; the row has " + list_json_keys(row));
      filled += json_as_text(*column);
      i = end;
    } else {
      filled += c;
    }
  }
  return filled;
}

Result<RowMapping> RowMapping::from_config(const Config& config) {
  ConfigReader read(config);
  RowMapping mapping;
  mapping.prompt =
      read.find_string("data.columns.prompt").value_or(read.get_string("data.prompt_key"));
  mapping.answer = read.find_string("data.columns.answer").value_or("");
  mapping.response = read.find_string("data.columns.response").value_or("");
  mapping.data_source = read.find_string("data.columns.data_source").value_or("data_source");
  for (std::size_t i = 0; i < kMediaKeys.size(); ++i) {
    if (config.find(kMediaKeys[i]) != nullptr)
      mapping.media[i] = read.find_string(kMediaKeys[i]).value_or("");
  }
  constexpr const char* kTeacherColumn = "distillation.teacher_key";  // of `starling train`
  if (config.find(kTeacherColumn) != nullptr) mapping.teacher = read.get_string(kTeacherColumn);
  if (mapping.teacher == "data_source") mapping.teacher.clear();
  mapping.prompt_template = read.find_string("data.prompt_template").value_or("");
  mapping.system_prompt = read.find_string("data.system_prompt").value_or("");
  mapping.answer_after = read.find_string("data.answer_after").value_or("");
  const std::string conversations = read.find_string("data.conversations").value_or("");
  const std::string form = read.find_string("data.prompt_form").value_or("");
  if (!read.status().ok()) return read.status();
  if (conversations == "messages") mapping.conversations = Conversations::kMessages;
  if (conversations == "tree") mapping.conversations = Conversations::kTree;
  if (form == "plain") mapping.prompt_form = PromptForm::kPlain;
  if (form == "chat") mapping.prompt_form = PromptForm::kChat;
  if (mapping.conversations != Conversations::kNone && !mapping.prompt_template.empty())
    return invalid_argument(
        "data.prompt_template and data.conversations do not go together: a conversation is a chat "
        "already");
  if (config.find_string("data.columns.prompt").value_or(std::nullopt) &&
      !mapping.prompt_template.empty())
    return invalid_argument(
        "data.columns.prompt and data.prompt_template both say what the prompt is: set one");
  return mapping;
}

Result<DataRow> map_row(const RawRow& row, const RowMapping& mapping) {
  if (!row.value.is_object())
    return invalid_argument(row.where + ": a row must be an object, it is " +
                            json_type_name(row.value));
  if (mapping.preference) return map_preference(row, mapping);
  if (Status status = check_text_alone(row, mapping); !status.ok()) return status;
  if (const ordered_json* messages =
          mapping.messages.empty() ? nullptr : json_member(row.value, mapping.messages))
    return map_conversation(row, mapping, *messages);
  DataRow into;
  into.where = row.where;
  Status status = read_prompt(row, mapping, into);
  if (status.ok()) status = set_form(row, mapping, into);
  if (status.ok()) status = add_chat_columns(row, mapping, into);
  if (!status.ok()) return status;
  status = read_judging(row, mapping, into);
  if (status.ok()) status = read_response(row, mapping, into);
  if (!status.ok()) return status;
  return into;
}

Result<DataRow> map_scored_row(const RawRow& row, const RowMapping& mapping) {
  if (!row.value.is_object())
    return invalid_argument(row.where + ": a row must be an object, it is " +
                            json_type_name(row.value));
  DataRow into;
  into.where = row.where;
  Status status = read_judging(row, mapping, into);
  if (status.ok()) status = read_response(row, mapping, into);
  if (!status.ok()) return status;
  if (!into.response) return no_column(row, "response", "data.columns.response");
  return into;
}

}  // namespace rl
