// StreamedRows: data files that do not fit into memory, a few blocks of which are held at a time.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "rl/data/row_mapping.h"
#include "rl/data/row_source.h"

namespace rl {

/// Rows by number, read when they are asked for. Not thread-safe.
class StreamedRows {
 public:
  /// Indexes the files. `window_rows` and the largest two blocks are what is held. Errors of
  /// open_rows and of reading through a text.
  static runtime::Result<std::unique_ptr<StreamedRows>> open(const std::vector<std::string>& files,
                                                             const RowSourceOptions& options,
                                                             const RowMapping& mapping,
                                                             std::int64_t window_rows);

  std::int64_t size() const { return size_; }
  /// The rows of each block of each file.
  const std::vector<std::vector<std::int64_t>>& block_rows() const { return block_rows_; }

  /// CHECKs 0 <= index < size(). Errors of RowSource::read_block and map_row.
  runtime::Result<DataRow> read(std::int64_t index);

  std::int64_t rows_held_max() const { return held_max_; }   // so far
  std::int64_t blocks_read() const { return blocks_read_; }  // so far

 private:
  struct Block {
    std::int64_t first = 0, rows = 0;  // in all files
    std::size_t file = 0;
    std::int64_t of_file = 0;
  };
  struct Held {
    std::size_t block;
    std::vector<RawRow> rows;
  };

  explicit StreamedRows(RowMapping mapping) : mapping_(std::move(mapping)) {}
  runtime::Result<const std::vector<RawRow>*> load(std::size_t block);

  RowMapping mapping_;
  std::vector<std::unique_ptr<RowSource>> sources_;
  std::vector<std::vector<std::int64_t>> block_rows_;
  std::vector<Block> blocks_;
  std::int64_t size_ = 0, keep_rows_ = 0;
  std::list<Held> cache_;  // latest use first
  std::int64_t held_ = 0, held_max_ = 0, blocks_read_ = 0;
};

}  // namespace rl
