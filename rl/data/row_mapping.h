// RowMapping: the way from a stored row to a prompt with what judges its answers.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rl/config/config.h"
#include "rl/data/data_row.h"
#include "rl/data/preference_mapping.h"
#include "rl/data/row_source.h"
#include "runtime/core/result.h"

namespace rl {

/// What `data.*` says of columns. Empty strings are what is not said.
struct RowMapping {
  enum class Conversations {
    kNone,      // a row is a prompt
    kMessages,  // a row is a conversation, whose last message is the response
    kTree       // a row is a message with the id of its parent, as in oasst1
  };
  enum class PromptForm { kAsStored, kPlain, kChat };

  std::string prompt = "prompt";  // the columns' names
  std::string answer;    // otherwise verl's reward_model.ground_truth, or ground_truth, answer,
                         // solution, target
  std::string response;  // otherwise `response`, which a row need not have
  std::string data_source = "data_source";
  std::string teacher =
      {};  // of distillation: another column than that of the data source; see DataRow::teacher
  std::string prompt_template;  // "Question: {question}\nAnswer:": what is in braces are columns;
                                // {{ and }} are braces
  std::string system_prompt;    // goes before a chat that has none
  std::string
      answer_after;  // the ground truth is what comes after the last of these: "####" of GSM8K
  std::string messages = {};  // a column that holds a whole conversation, taken as it is where a
                              // row has it; its enable_thinking goes into `extra`
  std::string tools = {};     // the column of a chat's tools; empty: `tools`
  std::string thinking = {};  // and of a conversation's enable_thinking
  std::array<std::string, 3> media = {
      "images", "videos",
      "audios"};  // columns that have to be empty, since only text is read; empty: none to look at
  std::vector<std::string> prompt_path =
      {};  // from the prompt's column down: verl's prompt_dict_keys
  std::vector<std::string> response_path = {};  // and from the response's
  Conversations conversations = Conversations::kNone;
  PromptForm prompt_form = PromptForm::kAsStored;
  std::optional<PreferenceMapping> preference = {};  // rows are preferences

  /// kInvalidArgument: settings that do not go together, a template that does not parse.
  static runtime::Result<RowMapping> from_config(const Config& config);

  bool operator==(const RowMapping&) const = default;
};

/// kInvalidArgument: a column is missing or of a wrong type; kUnimplemented: the row has more than
/// text. The message names row and column. Not for kTree.
runtime::Result<DataRow> map_row(const RawRow& row, const RowMapping& mapping);

/// Of a row with a response that is to be scored: `response`, ground truth, data source and
/// `extra_info`; it need not have a prompt. Errors as map_row.
runtime::Result<DataRow> map_scored_row(const RawRow& row, const RowMapping& mapping);

/// The text of a template. `where` is for messages.
runtime::Result<std::string> fill_template(std::string_view text, const nlohmann::ordered_json& row,
                                           const std::string& where);

}  // namespace rl
