// DataRow: one prompt with what is needed to judge its answers. A value.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace rl {

struct DataRow {
  nlohmann::ordered_json prompt;        // a string (plain text), or a list of chat messages [{"role":..., "content":...}, ...]
  std::string ground_truth;             // what the reward compares with; empty when the row has none
  std::string data_source;              // names the task, for choosing a rule and grouping metrics
  nlohmann::ordered_json extra;         // verl's `extra_info`, or null
  std::optional<std::string> response;  // a demonstration, for supervised steps
  std::string where;                    // "train.jsonl:12" or "toy:7", for messages

  bool is_chat() const { return prompt.is_array(); }
  bool operator==(const DataRow&) const = default;
};

}  // namespace rl
