#include "rl/data/arrow/arrow_rows.h"

#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>

#include <cstring>
#include <fstream>
#include <set>
#include <utility>

#include "rl/data/arrow/json_value.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

/// What is common to both: blocks that are record batches.
class BatchSource : public RowSource {
 public:
  explicit BatchSource(std::string name) : name_(std::move(name)) {}

  Result<std::vector<std::int64_t>> block_rows() override { return rows_; }

  Result<std::vector<RawRow>> read_block(std::int64_t block) override {
    CHECK(block >= 0);
    CHECK(block < static_cast<std::int64_t>(rows_.size()));
    std::vector<RawRow> rows;
    Status status =
        read_batches(static_cast<int>(block), rows, first_[static_cast<std::size_t>(block)]);
    if (!status.ok()) return status;
    if (static_cast<std::int64_t>(rows.size()) != rows_[static_cast<std::size_t>(block)]) {
      return invalid_argument("data file " + name_ + ": block " + std::to_string(block + 1) +
                              " has " + std::to_string(rows.size()) + " rows, and the file says " +
                              std::to_string(rows_[static_cast<std::size_t>(block)]) +
                              ": it is damaged");
    }
    return rows;
  }

  Result<std::vector<RawRow>> next() override {
    while (next_ < static_cast<std::int64_t>(rows_.size())) {
      Result<std::vector<RawRow>> rows = read_block(next_++);
      if (!rows.ok() || !rows->empty()) return rows;
    }
    return std::vector<RawRow>();
  }

 protected:
  virtual Status read_batches(int block, std::vector<RawRow>& rows, std::int64_t first) = 0;

  void add_block(std::int64_t rows) {
    first_.push_back(rows_.empty() ? 0 : first_.back() + rows_.back());
    rows_.push_back(rows);
  }

  Status append(const arrow::RecordBatch& batch, std::int64_t first,
                std::vector<RawRow>& rows) const {
    // Offsets and lengths inside come from the file.
    if (const arrow::Status status = batch.ValidateFull(); !status.ok())
      return arrow_failure(name_, status);
    std::set<std::string> names;
    for (const std::string& column : batch.schema()->field_names()) {
      if (!names.insert(column).second)
        return invalid_argument("data file " + name_ + ": it has two columns '" + column +
                                "': rename one of them");
    }
    for (std::int64_t i = 0; i < batch.num_rows(); ++i) {
      RawRow& row = rows.emplace_back();
      row.where = name_ + ": row " + std::to_string(first + static_cast<std::int64_t>(rows.size()));
      row.value = ordered_json::object();
      for (int column = 0; column < batch.num_columns(); ++column) {
        Result<ordered_json> value = arrow_value(*batch.column(column), i);
        if (!value.ok())
          return value.status().with_context(row.where + ": column '" + batch.column_name(column) +
                                             "'");
        row.value[batch.column_name(column)] = std::move(*value);
      }
    }
    return Status();
  }

  const std::string name_;

 private:
  std::vector<std::int64_t> rows_, first_;
  std::int64_t next_ = 0;
};

class ParquetSource final : public BatchSource {
 public:
  ParquetSource(std::string name, std::unique_ptr<parquet::arrow::FileReader> reader)
      : BatchSource(std::move(name)), reader_(std::move(reader)) {
    const auto metadata = reader_->parquet_reader()->metadata();
    for (int group = 0; group < metadata->num_row_groups(); ++group)
      add_block(metadata->RowGroup(group)->num_rows());
  }

 private:
  Status read_batches(int group, std::vector<RawRow>& rows, std::int64_t first) override {
    auto batches = reader_->GetRecordBatchReader({group});
    if (!batches.ok()) return arrow_failure(name_, batches.status());
    while (true) {
      std::shared_ptr<arrow::RecordBatch> batch;
      if (const arrow::Status status = (*batches)->ReadNext(&batch); !status.ok())
        return arrow_failure(name_ + ": row group " + std::to_string(group + 1), status);
      if (batch == nullptr) return Status();
      const Status status = append(*batch, first, rows);
      if (!status.ok()) return status;
    }
  }

  std::unique_ptr<parquet::arrow::FileReader> reader_;
};

/// The batches lie in the mapped file: what is held of each is where its columns begin.
class MappedSource final : public BatchSource {
 public:
  MappedSource(std::string name, std::vector<std::shared_ptr<arrow::RecordBatch>> batches)
      : BatchSource(std::move(name)), batches_(std::move(batches)) {
    for (const auto& batch : batches_) add_block(batch->num_rows());
  }

 private:
  Status read_batches(int block, std::vector<RawRow>& rows, std::int64_t first) override {
    return append(*batches_[static_cast<std::size_t>(block)], first, rows);
  }

  std::vector<std::shared_ptr<arrow::RecordBatch>> batches_;
};

arrow::Result<std::vector<std::shared_ptr<arrow::RecordBatch>>> read_file(
    std::shared_ptr<arrow::io::RandomAccessFile> file, const arrow::ipc::IpcReadOptions& options) {
  ARROW_ASSIGN_OR_RAISE(const auto reader,
                        arrow::ipc::RecordBatchFileReader::Open(std::move(file), options));
  std::vector<std::shared_ptr<arrow::RecordBatch>> batches;
  for (int i = 0; i < reader->num_record_batches(); ++i) {
    ARROW_ASSIGN_OR_RAISE(batches.emplace_back(), reader->ReadRecordBatch(i));
  }
  return batches;
}

arrow::Result<std::vector<std::shared_ptr<arrow::RecordBatch>>> read_stream(
    const std::shared_ptr<arrow::io::MemoryMappedFile>& file,
    const arrow::ipc::IpcReadOptions& options) {
  ARROW_ASSIGN_OR_RAISE(const auto reader,
                        arrow::ipc::RecordBatchStreamReader::Open(file, options));
  ARROW_ASSIGN_OR_RAISE(const std::int64_t size, file->GetSize());
  std::vector<std::shared_ptr<arrow::RecordBatch>> batches;
  while (true) {
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::RecordBatch> batch, reader->Next());
    if (batch == nullptr) break;
    batches.push_back(std::move(batch));
  }
  // A stream may end without a mark, but one that was cut off right between two batches ends just
  // so. Every writer of files leaves the mark.
  ARROW_ASSIGN_OR_RAISE(const std::int64_t end, file->Tell());
  if (size < 8 || end < 8) return arrow::Status::Invalid("no end of stream");
  ARROW_ASSIGN_OR_RAISE(const auto mark, file->ReadAt(end - 8, 8));
  if (std::memcmp(mark->data(), "\xFF\xFF\xFF\xFF\0\0\0\0", 8) != 0)
    return arrow::Status::Invalid("the stream has no end: it is cut off");
  return batches;
}

}  // namespace

Status arrow_failure(const std::string& name, const arrow::Status& status) {
  std::string reason = status.message();
  if (const std::size_t newline = reason.find('\n'); newline != std::string::npos)
    reason.resize(newline);
  const std::string message = "data file " + name + ": " + reason;
  if (status.IsOutOfMemory() || status.IsCapacityError())
    return runtime::resource_exhausted(message);
  if (status.IsNotImplemented()) return runtime::unimplemented(message);
  return invalid_argument(message);
}

Result<std::unique_ptr<RowSource>> open_parquet(const std::string& name,
                                                const std::filesystem::path& path) {
  auto file = arrow::io::ReadableFile::Open(path.string(), arrow::system_memory_pool());
  if (!file.ok()) return arrow_failure(name, file.status());
  parquet::ReaderProperties properties(arrow::system_memory_pool());
  properties.enable_buffered_stream();  // a page at a time, not whole columns
  parquet::arrow::FileReaderBuilder builder;
  if (const arrow::Status status = builder.Open(*file, properties); !status.ok())
    return arrow_failure(name, status);
  parquet::ArrowReaderProperties arrow_properties;
  arrow_properties.set_batch_size(1024);
  arrow_properties.set_pre_buffer(false);
  auto reader =
      builder.memory_pool(arrow::system_memory_pool())->properties(arrow_properties)->Build();
  if (!reader.ok()) return arrow_failure(name, reader.status());
  return std::unique_ptr<RowSource>(std::make_unique<ParquetSource>(name, std::move(*reader)));
}

Result<std::unique_ptr<RowSource>> open_arrow(const std::string& name,
                                              const std::filesystem::path& path) {
  char magic[6] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
  auto file = arrow::io::MemoryMappedFile::Open(path.string(), arrow::io::FileMode::READ);
  if (!file.ok()) return arrow_failure(name, file.status());
  auto options = arrow::ipc::IpcReadOptions::Defaults();
  options.memory_pool = arrow::system_memory_pool();
  options.use_threads = false;
  auto batches = std::memcmp(magic, "ARROW1", sizeof magic) == 0 ? read_file(*file, options)
                                                                 : read_stream(*file, options);
  if (!batches.ok()) return arrow_failure(name, batches.status());
  return std::unique_ptr<RowSource>(std::make_unique<MappedSource>(name, std::move(*batches)));
}

}  // namespace rl
