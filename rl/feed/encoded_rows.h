// EncodedRows: the rows of a data set in order, each encoded for one model. What the feeds of
// supervised and preference training stand on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rl/data/dataset.h"
#include "rl/data/row_feed.h"
#include "rl/tokenizer/tokenizer.h"
#include "runtime/core/result.h"

namespace rl {

struct EncodedRowsOptions {
  std::filesystem::path model = {};  // whose tokenizer and chat template to use
  std::int64_t context = 0;          // the model's, in tokens; 0: unknown
  std::int64_t vocabulary = 0;       // the model's entries; 0: unknown
  std::int64_t batch_rows = 1;
  std::int64_t workers = 1;  // that a step's rows are cut over
  std::int64_t leaves = 0;   // see deal_rows()
  bool shuffle = true;
  std::uint64_t shuffle_seed = 0;
};

/// kInvalidArgument: the model cannot read a row whose tokens are `parts` and whose longest
/// sequence has `longest`; names `where` and the cure.
runtime::Status check_readable(std::span<const std::span<const std::int32_t>> parts,
                               std::int64_t longest, const EncodedRowsOptions& options,
                               const Tokenizer& tokenizer, const std::string& where);

/// Rows as Tokens, which a Builder makes of them. Its position is saved with checkpoints. Not
/// thread-safe; stays where it is made.
template <class Builder, class Tokens>
class EncodedRows {
 public:
  /// Every row of a data set of up to kRowsCheckedMax rows is encoded once here. So a wrong row is
  /// found before the first step. Errors: those of Dataset::load, Tokenizer::load, the Builder,
  /// RowFeed::create and check_readable.
  template <class BuilderOptions>
  static runtime::Result<std::unique_ptr<EncodedRows>> create(const DatasetOptions& dataset,
                                                              const EncodedRowsOptions& options,
                                                              const BuilderOptions& how);

  EncodedRows(const EncodedRows&) = delete;
  EncodedRows& operator=(const EncodedRows&) = delete;

  const EncodedRowsOptions& options() const { return options_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const Builder& builder() const { return *builder_; }

  /// The feed of rows: their number, the epoch, and the position in it.
  RowFeed& rows() { return *rows_; }
  const RowFeed& rows() const { return *rows_; }

  /// By row of those that were encoded at the beginning, how many tokens each of its parts has; see
  /// Tokens::parts().
  const std::vector<std::vector<std::int64_t>>& part_sizes() const { return part_sizes_; }

  runtime::Result<Tokens> read(std::int64_t row) const;
  runtime::Result<std::vector<Tokens>> read(std::span<const std::int64_t> rows) const;

  /// The next batch.
  runtime::Result<std::vector<Tokens>> next();

  /// What `make` makes of all rows in order, of N at a time.
  template <class Make>
  auto all(std::int64_t step_rows, Make&& make) const
      -> runtime::Result<std::vector<std::invoke_result_t<Make, std::vector<Tokens>>>>;

 private:
  EncodedRows(const EncodedRowsOptions& options, Tokenizer tokenizer)
      : options_(options), tokenizer_(std::move(tokenizer)) {}

  EncodedRowsOptions options_;
  Tokenizer tokenizer_;
  std::optional<Builder> builder_;  // borrows the tokenizer
  std::optional<RowFeed> rows_;
  std::vector<std::vector<std::int64_t>> part_sizes_;
};

template <class Builder, class Tokens>
template <class BuilderOptions>
runtime::Result<std::unique_ptr<EncodedRows<Builder, Tokens>>> EncodedRows<Builder, Tokens>::create(
    const DatasetOptions& dataset, const EncodedRowsOptions& options, const BuilderOptions& how) {
  runtime::Result<Tokenizer> tokenizer = Tokenizer::load(options.model);
  if (!tokenizer.ok()) return tokenizer.status();
  std::unique_ptr<EncodedRows> made(new EncodedRows(options, std::move(*tokenizer)));
  runtime::Result<Builder> builder = Builder::create(made->tokenizer_, how);
  if (!builder.ok()) return builder.status();
  made->builder_ = std::move(*builder);
  runtime::Result<Dataset> rows = Dataset::load(dataset);
  if (!rows.ok()) return rows.status();
  runtime::Result<RowFeed> batches =
      RowFeed::create(std::move(*rows), {.batch_rows = options.batch_rows,
                                         .shuffle = options.shuffle,
                                         .shuffle_seed = options.shuffle_seed});
  if (!batches.ok()) return batches.status();
  made->rows_ = std::move(*batches);
  for (std::int64_t row = 0; row < std::min(made->rows_->rows(), kRowsCheckedMax); ++row) {
    const runtime::Result<Tokens> tokens = made->read(row);
    if (!tokens.ok()) return tokens.status();
    std::vector<std::int64_t>& sizes = made->part_sizes_.emplace_back();
    for (const auto& part : tokens->parts()) sizes.push_back(std::ssize(part));
  }
  return made;
}

template <class Builder, class Tokens>
runtime::Result<Tokens> EncodedRows<Builder, Tokens>::read(std::int64_t row) const {
  const runtime::Result<DataRow> data = rows_->dataset().read(row);
  if (!data.ok()) return data.status();
  runtime::Result<Tokens> tokens = builder_->tokenize(*data);
  if (!tokens.ok()) return tokens;
  const runtime::Status readable =
      check_readable(tokens->parts(), tokens->longest(), options_, tokenizer_, data->where);
  if (!readable.ok()) return readable;
  return tokens;
}

template <class Builder, class Tokens>
runtime::Result<std::vector<Tokens>> EncodedRows<Builder, Tokens>::read(
    std::span<const std::int64_t> rows) const {
  std::vector<Tokens> all;
  all.reserve(rows.size());
  for (const std::int64_t row : rows) {
    runtime::Result<Tokens> tokens = read(row);
    if (!tokens.ok()) return tokens.status();
    all.push_back(std::move(*tokens));
  }
  return all;
}

template <class Builder, class Tokens>
runtime::Result<std::vector<Tokens>> EncodedRows<Builder, Tokens>::next() {
  const runtime::Result<std::vector<std::int64_t>> rows = rows_->next();
  if (!rows.ok()) return rows.status();
  return read(*rows);
}

template <class Builder, class Tokens>
template <class Make>
auto EncodedRows<Builder, Tokens>::all(std::int64_t step_rows, Make&& make) const
    -> runtime::Result<std::vector<std::invoke_result_t<Make, std::vector<Tokens>>>> {
  std::vector<std::invoke_result_t<Make, std::vector<Tokens>>> steps;
  for (const std::vector<std::int64_t>& rows : rows_->in_order(step_rows)) {
    runtime::Result<std::vector<Tokens>> tokens = read(rows);
    if (!tokens.ok()) return tokens.status();
    steps.push_back(make(std::move(*tokens)));
  }
  return steps;
}

}  // namespace rl
