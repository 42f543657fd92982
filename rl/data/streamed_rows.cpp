#include "rl/data/streamed_rows.h"

#include <algorithm>
#include <utility>

namespace rl {

using runtime::Result;

Result<std::unique_ptr<StreamedRows>> StreamedRows::open(const std::vector<std::string>& files,
                                                         const RowSourceOptions& options,
                                                         const RowMapping& mapping,
                                                         std::int64_t window_rows) {
  std::unique_ptr<StreamedRows> rows(new StreamedRows(mapping));
  std::int64_t largest = 0;
  for (const std::string& file : files) {
    Result<std::unique_ptr<RowSource>> source = open_rows(file, options);
    if (!source.ok()) return source.status();
    const Result<std::vector<std::int64_t>> of_file = (*source)->block_rows();
    if (!of_file.ok()) return of_file.status();
    std::vector<std::int64_t>& block_rows = rows->block_rows_.emplace_back();
    for (std::size_t block = 0; block < of_file->size(); ++block) {
      const std::int64_t count = (*of_file)[block];
      if (count == 0) continue;
      rows->blocks_.push_back(
          {rows->size_, count, rows->sources_.size(), static_cast<std::int64_t>(block)});
      block_rows.push_back(count);
      rows->size_ += count;
      largest = std::max(largest, count);
    }
    rows->sources_.push_back(std::move(*source));
  }
  // A window is as long as its last block makes it.
  rows->keep_rows_ = window_rows + largest;
  return rows;
}

Result<DataRow> StreamedRows::read(std::int64_t index) {
  CHECK(index >= 0);
  CHECK(index < size_);
  const auto after =
      std::upper_bound(blocks_.begin(), blocks_.end(), index,
                       [](std::int64_t row, const Block& block) { return row < block.first; });
  const auto block = static_cast<std::size_t>(after - blocks_.begin() - 1);
  const Result<const std::vector<RawRow>*> rows = load(block);
  if (!rows.ok()) return rows.status();
  return map_row((**rows)[static_cast<std::size_t>(index - blocks_[block].first)], mapping_);
}

Result<const std::vector<RawRow>*> StreamedRows::load(std::size_t block) {
  const auto held = std::find_if(cache_.begin(), cache_.end(),
                                 [block](const Held& entry) { return entry.block == block; });
  if (held != cache_.end()) {
    cache_.splice(cache_.begin(), cache_, held);
    return &cache_.front().rows;
  }
  while (!cache_.empty() && held_ + blocks_[block].rows > keep_rows_) {
    held_ -= static_cast<std::int64_t>(cache_.back().rows.size());
    cache_.pop_back();
  }
  Result<std::vector<RawRow>> rows =
      sources_[blocks_[block].file]->read_block(blocks_[block].of_file);
  if (!rows.ok()) return rows.status();
  // A file that is written while it is read.
  if (static_cast<std::int64_t>(rows->size()) != blocks_[block].rows) {
    return runtime::invalid_argument((rows->empty() ? "data" : rows->front().where) +
                                     ": the file has changed since training began");
  }
  held_ += blocks_[block].rows;
  held_max_ = std::max(held_max_, held_);
  ++blocks_read_;
  cache_.push_front({block, std::move(*rows)});
  return &cache_.front().rows;
}

}  // namespace rl
