// Dataset: the rows that a run trains or validates on. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// One prompt with what is needed to judge its answers.
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

struct DatasetOptions {
  std::vector<std::string> files;  // JSONL; "~/" is expanded. Ignored when `name` is given
  std::string name;                // a built-in data set: "toy"
  std::string prompt_key = "prompt";
  std::uint64_t seed = 0;                 // of a built-in data set
  std::int64_t rows_max = -1;             // keep only the first so many; -1 keeps all
  std::size_t line_bytes_max = 64 << 20;  // a longer line is refused
  nlohmann::ordered_json toy;             // the `data.toy` section
};

/// Rows in memory, in file order. A value.
class Dataset {
 public:
  Dataset() = default;
  explicit Dataset(std::vector<DataRow> rows) : rows_(std::move(rows)) {}

  /// Reads all files, or makes the built-in set. kNotFound: no such file; kInvalidArgument: malformed JSON, a line without the prompt key
  /// or with a wrong type ("train.jsonl:12: no key 'prompt'; it has 'question', 'answer'"), no row at all, unknown built-in name;
  /// kUnimplemented: a format that is not built yet.
  /// Row forms: verl's {"data_source", "prompt": [messages], "reward_model": {"ground_truth"}, "extra_info"}, and the simple
  /// {"prompt": "...", "answer": ...} (also "ground_truth", "solution", "target"); "response" gives a demonstration.
  static runtime::Result<Dataset> load(const DatasetOptions& options);

  std::int64_t size() const { return static_cast<std::int64_t>(rows_.size()); }
  /// CHECKs 0 <= index < size().
  const DataRow& row(std::int64_t index) const;
  const std::vector<DataRow>& rows() const { return rows_; }

 private:
  std::vector<DataRow> rows_;
};

enum class Split {
  kTrain,          // data.train_files, or the built-in set
  kValidation,     // data.val_files, or other rows of the built-in set
  kDemonstrations  // data.sft_files for the supervised warm start; without them the training rows, which then need a `response`
};

/// What `data.*` says about one split. kNotFound when nothing names any data ("set data.train_files=... or data.dataset_name=toy");
/// for kValidation an empty optional when there is none to validate on.
runtime::Result<std::optional<DatasetOptions>> dataset_options(const Config& config, Split split);

}  // namespace rl
