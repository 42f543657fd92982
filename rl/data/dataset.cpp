#include "rl/data/dataset.h"

#include "rl/data/jsonl.h"
#include "rl/data/toy.h"

namespace rl {

using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

const DataRow& Dataset::row(std::int64_t index) const {
  CHECK(index >= 0);
  CHECK(index < size());
  return rows_[static_cast<std::size_t>(index)];
}

Result<Dataset> Dataset::load(const DatasetOptions& options) {
  std::vector<DataRow> rows;
  if (!options.name.empty()) {
    if (options.name != "toy")
      return invalid_argument("data.dataset_name: there is no built-in data set '" + options.name + "'; there is toy");
    Result<ToyOptions> toy = ToyOptions::from_json(options.toy, options.seed);
    if (!toy.ok()) return toy.status();
    rows = make_toy_dataset(*toy).rows();
  } else {
    if (options.files.empty()) return runtime::not_found("no data: set data.train_files=FILE.jsonl or data.dataset_name=toy");
    for (const std::string& file : options.files) {
      const Status status = read_jsonl(file, options, rows);
      if (!status.ok()) return status;
    }
  }
  if (options.rows_max >= 0 && static_cast<std::int64_t>(rows.size()) > options.rows_max)
    rows.resize(static_cast<std::size_t>(options.rows_max));
  if (rows.empty()) {
    std::string names;
    for (const std::string& file : options.files) names += (names.empty() ? "" : ", ") + file;
    return invalid_argument("the data set is empty: " + (names.empty() ? options.name : names));
  }
  return Dataset(std::move(rows));
}

Result<std::optional<DatasetOptions>> dataset_options(const Config& config, Split split) {
  const bool train = split != Split::kValidation;
  const bool own_demonstrations =
      split == Split::kDemonstrations && config.find_strings("data.sft_files").value_or(std::nullopt).has_value();
  const char* files_key = own_demonstrations ? "data.sft_files" : train ? "data.train_files" : "data.val_files";
  ConfigReader read(config);
  DatasetOptions options;
  options.name = read.find_string("data.dataset_name").value_or("");
  options.files = read.find_strings(files_key).value_or(std::vector<std::string>());
  options.prompt_key = read.get_string("data.prompt_key");
  options.rows_max = read.get_int(train ? "data.train_max_samples" : "data.val_max_samples");
  const std::int64_t seed = read.find_int("data.seed").value_or(read.find_int("trainer.seed").value_or(0));
  if (!read.status().ok()) return read.status();
  if (const auto* toy = config.find("data.toy")) options.toy = *toy;
  // Validation on a built-in set means other rows of the same task, and few of them.
  options.seed = static_cast<std::uint64_t>(seed) * 2 + (train ? 0 : 1);
  if (!options.files.empty()) {
    options.name.clear();  // files win: a validation file may go with a built-in training set
  } else if (!train && !options.name.empty() && options.rows_max < 0) {
    options.rows_max = 64;
  }
  if (options.files.empty() && options.name.empty()) {
    if (!train) return std::optional<DatasetOptions>();
    return runtime::not_found("no data to train on: set data.train_files=FILE.jsonl or data.dataset_name=toy");
  }
  return std::optional<DatasetOptions>(std::move(options));
}

}  // namespace rl
