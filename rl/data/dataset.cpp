#include "rl/data/dataset.h"

#include <numeric>

#include "rl/data/message_tree.h"
#include "rl/data/row_source.h"
#include "rl/data/streamed_rows.h"
#include "rl/data/toy.h"
#include "rl/data/toy_preferences.h"

namespace rl {

using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

namespace {

// The rows of each block that are left.
std::vector<std::vector<std::int64_t>> count_kept(
    const std::vector<std::vector<std::int64_t>>& block_rows,
    const std::vector<std::int64_t>& kept) {
  std::vector<std::vector<std::int64_t>> left;
  std::int64_t end = 0;
  auto next = kept.begin();
  for (const std::vector<std::int64_t>& file : block_rows) {
    std::vector<std::int64_t>& of_file = left.emplace_back();
    for (const std::int64_t rows : file) {
      end += rows;
      std::int64_t count = 0;
      for (; next != kept.end() && *next < end; ++next) ++count;
      if (count > 0) of_file.push_back(count);
    }
  }
  return left;
}

// Appends a file's rows, up to `rows_max` in all.
Status read_rows(const std::string& file, const DatasetOptions& options, std::vector<DataRow>& rows,
                 std::vector<RawRow>& messages) {
  Result<std::unique_ptr<RowSource>> source =
      open_rows(file, {.row_bytes_max = options.row_bytes_max, .split = options.split});
  if (!source.ok()) return source.status();
  while (true) {
    Result<std::vector<RawRow>> block = (*source)->next();
    if (!block.ok()) return block.status();
    if (block->empty()) return Status();
    for (RawRow& raw : *block) {
      if (options.mapping.conversations == RowMapping::Conversations::kTree) {
        messages.push_back(std::move(raw));
        continue;
      }
      if (options.rows_max >= 0 && static_cast<std::int64_t>(rows.size()) >= options.rows_max)
        return Status();
      Result<DataRow> row = map_row(raw, options.mapping);
      if (!row.ok()) return row.status();
      rows.push_back(std::move(*row));
    }
  }
}

Status check_weights(const DatasetOptions& options) {
  if (options.weights.empty() || options.weights.size() == options.files.size()) return Status();
  return invalid_argument("data.train_weights has " + std::to_string(options.weights.size()) +
                          " weights, and data.train_files " + std::to_string(options.files.size()) +
                          " files: give one for each");
}

std::string names_of(const DatasetOptions& options) {
  std::string names;
  for (const std::string& file : options.files) names += (names.empty() ? "" : ", ") + file;
  return names.empty() ? options.name : names;
}

}  // namespace

std::int64_t Dataset::size() const {
  return static_cast<std::int64_t>(kept_         ? kept_->size()
                                   : in_memory() ? rows_.size()
                                                 : static_cast<std::size_t>(streamed_->size()));
}

const DataRow& Dataset::row(std::int64_t index) const {
  CHECK(in_memory());
  CHECK(index >= 0);
  CHECK(index < size());
  return rows_[static_cast<std::size_t>(index)];
}

const std::vector<DataRow>& Dataset::rows() const {
  CHECK(in_memory());
  return rows_;
}

Result<DataRow> Dataset::read(std::int64_t index) const {
  CHECK(index >= 0);
  CHECK(index < size());
  if (in_memory()) return rows_[static_cast<std::size_t>(index)];
  return streamed_->read(kept_ ? (*kept_)[static_cast<std::size_t>(index)] : index);
}

Dataset Dataset::select(const std::vector<std::int64_t>& indices) const {
  Dataset left = *this;
  left.block_rows_ = count_kept(block_rows_, indices);
  if (in_memory()) {
    left.rows_.clear();
    for (const std::int64_t index : indices) left.rows_.push_back(row(index));
    return left;
  }
  left.kept_ = indices;
  if (!kept_) return left;
  for (std::int64_t& index : *left.kept_) index = (*kept_)[static_cast<std::size_t>(index)];
  return left;
}

Result<SampleLayout> Dataset::layout() const {
  SampleLayout layout;
  if (in_memory() && weights_.empty()) return layout;
  layout.window_rows = window_rows_;
  if (weights_.empty()) layout.parts.emplace_back();
  for (std::size_t file = 0; file < block_rows_.size(); ++file) {
    const std::vector<std::int64_t>& rows = block_rows_[file];
    if (weights_.empty()) {
      layout.parts[0].block_rows.insert(layout.parts[0].block_rows.end(), rows.begin(), rows.end());
      continue;
    }
    if (rows.empty())
      return invalid_argument("data.train_files: file " + std::to_string(file + 1) +
                              " has a weight and no rows left (data.train_max_samples, "
                              "data.filter_overlong_prompts): leave it out");
    layout.parts.push_back({rows, weights_[file]});
  }
  return layout;
}

Result<Dataset> Dataset::load(const DatasetOptions& options) {
  Dataset dataset;
  if (!options.name.empty()) {
    if (options.name != "toy")
      return invalid_argument("data.dataset_name: there is no built-in data set '" + options.name +
                              "'; there is toy");
    Result<ToyOptions> toy = ToyOptions::from_json(options.toy, options.seed);
    if (!toy.ok()) return toy.status();
    dataset = make_toy_dataset(*toy);
    if (options.mapping.preference)
      add_toy_preferences(dataset.rows_, *toy, options.mapping.preference->form);
    if (options.rows_max >= 0 && dataset.size() > options.rows_max)
      dataset.rows_.resize(static_cast<std::size_t>(options.rows_max));
  } else {
    if (options.files.empty())
      return runtime::not_found("no data: set data.train_files=FILE or data.dataset_name=toy");
    if (const Status status = check_weights(options); !status.ok()) return status;
    const Status status = options.streaming ? dataset.index(options) : dataset.read_all(options);
    if (!status.ok()) return status;
    dataset.weights_ = options.weights;
    dataset.window_rows_ = options.window_rows;
  }
  if (dataset.size() == 0) return invalid_argument("the data set is empty: " + names_of(options));
  return dataset;
}

Status Dataset::read_all(const DatasetOptions& options) {
  if (!options.python.empty()) {
    const Status status =
        read_python_rows(options.python, options.files, options.rows_max, [&](RawRow raw) {
          Result<DataRow> row = map_row(raw, options.mapping);
          if (row.ok()) rows_.push_back(std::move(*row));
          return row.status();
        });
    if (status.ok() && !rows_.empty())
      block_rows_.assign(1, {static_cast<std::int64_t>(rows_.size())});
    return status;
  }
  std::vector<RawRow> messages;
  for (const std::string& file : options.files) {
    const std::size_t before = rows_.size();
    Status status = read_rows(file, options, rows_, messages);
    if (!status.ok()) return status;
    block_rows_.emplace_back();
    if (rows_.size() > before)
      block_rows_.back().push_back(static_cast<std::int64_t>(rows_.size() - before));
  }
  if (options.mapping.conversations != RowMapping::Conversations::kTree) return Status();
  if (!options.weights.empty())
    return runtime::unimplemented(
        "data.train_weights with data.conversations=tree, whose conversations may lie in several "
        "files: convert them first (starling data convert)");
  Result<std::vector<DataRow>> rows = conversations_of_tree(messages, options.mapping);
  if (!rows.ok()) return rows.status();
  rows_ = std::move(*rows);
  if (options.rows_max >= 0 && static_cast<std::int64_t>(rows_.size()) > options.rows_max)
    rows_.resize(static_cast<std::size_t>(options.rows_max));
  block_rows_.assign(1, {static_cast<std::int64_t>(rows_.size())});
  return Status();
}

Status Dataset::index(const DatasetOptions& options) {
  if (options.mapping.conversations == RowMapping::Conversations::kTree) {
    return runtime::unimplemented(
        "data.conversations=tree needs all messages in memory: set data.streaming=false, or "
        "convert them first (starling data convert)");
  }
  Result<std::unique_ptr<StreamedRows>> rows = StreamedRows::open(
      options.files, {.row_bytes_max = options.row_bytes_max, .split = options.split},
      options.mapping, options.window_rows);
  if (!rows.ok()) return rows.status();
  streamed_ = std::move(*rows);
  block_rows_ = streamed_->block_rows();
  if (options.rows_max < 0 || options.rows_max >= size()) return Status();
  std::vector<std::int64_t> first(static_cast<std::size_t>(options.rows_max));
  std::iota(first.begin(), first.end(), std::int64_t{0});
  *this = select(first);
  return Status();
}

Result<std::optional<DatasetOptions>> dataset_options(const Config& config, Split split) {
  const bool train = split != Split::kValidation;
  const bool own_demonstrations =
      split == Split::kDemonstrations &&
      config.find_strings("data.sft_files").value_or(std::nullopt).has_value();
  const char* files_key = own_demonstrations ? "data.sft_files"
                          : train            ? "data.train_files"
                                             : "data.val_files";
  ConfigReader read(config);
  DatasetOptions options;
  options.name = read.find_string("data.dataset_name").value_or("");
  options.files = read.find_strings(files_key).value_or(std::vector<std::string>());
  options.split = split == Split::kValidation ? "validation" : "train";
  const Result<RowMapping> mapping = RowMapping::from_config(config);
  if (!mapping.ok()) return mapping.status();
  options.mapping = *mapping;
  if (split == Split::kTrain && config.find("data.train_weights") != nullptr &&
      !config.find("data.train_weights")->is_null())
    options.weights = read.get_floats("data.train_weights");
  options.streaming = split == Split::kTrain && read.get_bool("data.streaming");
  options.window_rows = read.get_int("data.shuffle_window");
  options.rows_max = read.get_int(train ? "data.train_max_samples" : "data.val_max_samples");
  const std::int64_t seed =
      read.find_int("data.seed").value_or(read.find_int("trainer.seed").value_or(0));
  if (!read.status().ok()) return read.status();
  const std::optional<std::string> python = read.find_string("data.custom_cls.path");
  if (python && !python->empty()) {
    if (!options.name.empty())
      return invalid_argument(
          "data.custom_cls.path makes the rows of files, and data.dataset_name=" + options.name +
          " has none: set one of the two");
    options.python = {.path = *python,
                      .name = read.find_string("data.custom_cls.name").value_or(""),
                      .model = read.find_string("actor_rollout_ref.model.path").value_or(""),
                      .config = {}};
    if (options.python.name.empty())
      return config.out_of_range("data.custom_cls.name",
                                 "the name of a class in data.custom_cls.path");
    if (const auto* section = config.find("data")) options.python.config = *section;
    options.streaming = false;
    options.weights.clear();
    // Its rows have verl's columns, whatever the files have.
    options.mapping.prompt = "prompt";
    options.mapping.prompt_template.clear();
  }
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
    return runtime::not_found(
        "no data to train on: set data.train_files=FILE or data.dataset_name=toy");
  }
  return std::optional<DatasetOptions>(std::move(options));
}

}  // namespace rl
