// Dataset: the rows that a run trains or validates on. Torch-free.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rl/config/config.h"
#include "rl/data/data_row.h"
#include "rl/data/python_dataset.h"
#include "rl/data/row_mapping.h"
#include "rl/data/sample_order.h"
#include "runtime/core/result.h"

namespace rl {

class StreamedRows;

struct DatasetOptions {
  std::vector<std::string>
      files;                    // of any form that open_rows() knows. Ignored when `name` is given
  std::string split;            // of a folder with several: "train", "validation"
  std::vector<double> weights;  // of the files in an epoch; none: every row once
  RowMapping mapping;
  std::string name;                      // a built-in data set: "toy"
  std::uint64_t seed = 0;                // of a built-in data set
  std::int64_t rows_max = -1;            // keep only the first rows_max; -1: all
  std::size_t row_bytes_max = 64 << 20;  // a longer line is refused
  bool streaming = false;                // read rows when they are needed, not all at once
  std::int64_t window_rows = 65536;      // rows that are shuffled among each other
  nlohmann::ordered_json toy;            // the `data.toy` section
  PythonDataset python = {};             // a class that reads the files instead
};

/// Rows in memory, or read when they are asked for, in file order. A value; copies of a streamed
/// one share what they hold, and are used by one thread.
class Dataset {
 public:
  Dataset() = default;
  explicit Dataset(std::vector<DataRow> rows) : rows_(std::move(rows)) {}

  /// Reads all files, or indexes them, or makes the built-in set. Errors are those of open_rows and
  /// map_row ("train.jsonl:12: no key 'prompt'; it has 'question', 'answer'"). kInvalidArgument: no
  /// row at all, a file with a weight but no rows, unknown built-in name. kUnimplemented:
  /// conversations of a tree in streamed files. Row forms: verl's {"data_source", "prompt":
  /// [messages], "reward_model": {"ground_truth"}, "extra_info"}, and the simple {"prompt": "...",
  /// "answer": ...} (also "ground_truth", "solution", "target"); "response" gives a demonstration.
  /// Others by RowMapping.
  static runtime::Result<Dataset> load(const DatasetOptions& options);

  bool in_memory() const { return streamed_ == nullptr; }
  std::int64_t size() const;
  /// CHECKs 0 <= index < size(). Of a streamed data set the errors of reading and map_row.
  runtime::Result<DataRow> read(std::int64_t index) const;

  /// CHECKs in_memory() and 0 <= index < size().
  const DataRow& row(std::int64_t index) const;
  const std::vector<DataRow>& rows() const;

  /// Only the rows of these ascending numbers.
  Dataset select(const std::vector<std::int64_t>& indices) const;

  /// What the sampler has to know: empty for rows in memory without weights. kInvalidArgument: a
  /// file with a weight has no rows.
  runtime::Result<SampleLayout> layout() const;

  const StreamedRows* streamed() const { return streamed_.get(); }

 private:
  runtime::Status read_all(const DatasetOptions& options);
  runtime::Status index(const DatasetOptions& options);

  std::vector<DataRow> rows_;
  std::shared_ptr<StreamedRows> streamed_;
  std::optional<std::vector<std::int64_t>>
      kept_;  // of a streamed one: the rows of the files that are left
  std::vector<std::vector<std::int64_t>> block_rows_;  // of each file, in what is left
  std::vector<double> weights_;
  std::int64_t window_rows_ = 0;
};

enum class Split {
  kTrain,          // data.train_files, or the built-in set
  kValidation,     // data.val_files, or other rows of the built-in set
  kDemonstrations  // data.sft_files for the supervised warm start; without them the training rows,
                   // which then need a `response`
};

/// What `data.*` says about one split. kNotFound when nothing names any data ("set
/// data.train_files=... or data.dataset_name=toy"); for kValidation an empty optional when there is
/// none to validate on.
runtime::Result<std::optional<DatasetOptions>> dataset_options(const Config& config, Split split);

}  // namespace rl
