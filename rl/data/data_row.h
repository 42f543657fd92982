// DataRow: one prompt with what is needed to judge its answers. A value.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace rl {

/// Two responses to a prompt of which one is better, or a single one that is wanted or not.
struct Preference {
  nlohmann::ordered_json
      chosen;  // a text, or the messages that follow the prompt's; of a single response, it itself
  nlohmann::ordered_json rejected;  // the same; null: there is a single response
  double margin = 0.0;              // by how much the chosen one is better, in the data's own units
  bool wanted = true;               // of a single response

  bool is_pair() const { return !rejected.is_null(); }
  bool operator==(const Preference&) const = default;
};

struct DataRow {
  nlohmann::ordered_json prompt;  // a string (plain text), or a list of chat messages [{"role":...,
                                  // "content":...}, ...]
  std::string ground_truth;       // what the reward compares with; empty when the row has none
  std::string data_source;        // names the task, for choosing a rule and grouping metrics
  nlohmann::ordered_json extra;   // verl's `extra_info`, or null
  std::optional<std::string> response;  // a demonstration, for supervised steps
  std::string where;                    // "train.jsonl:12" or "toy:7", for messages
  std::string agent_name = {};          // the loop that the row asks for; empty: the configured one
  std::optional<std::string> teacher = {};  // what the row has in the column that chooses among
                                            // teachers, where that is not the data source's
  std::optional<double> difficulty =
      {};  // what a `difficulty` next to the prompt or in `extra_info` says; for curricula
  std::optional<Preference> preference = {};  // of rows that are read as preferences
  std::string answerless = {};  // of a row without a column of an answer: the columns that it has
  std::string unread = {};  // columns for a chat template with a value, of a prompt that is no chat
  bool ground_truth_is_json = false;  // it is no text in the data, but this list, object or boolean
  nlohmann::ordered_json tools = nullptr;  // the tools for a chat template: a list, or null

  bool is_chat() const { return prompt.is_array(); }
  bool operator==(const DataRow&) const = default;
};

}  // namespace rl
