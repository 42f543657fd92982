#include "rl/data/text_rows.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <utility>

#include "rl/data/json_text.h"
#include "rl/data/record_split.h"
#include "rl/data/row_type.h"
#include "rl/tokenizer/unicode_text.h"
#include "rl/weights/atomic_file.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

constexpr std::size_t kReadBytes = 64 << 10;
constexpr std::size_t kBlockBytes = 256 << 10;
constexpr std::int64_t kBlockRows = 1024;

struct Block {
  std::uint64_t offset = 0;
  std::int64_t number = 0;  // records before it
  std::int64_t rows = 0;
};

struct Record {
  std::string_view text;  // until the next call
  std::int64_t number = 0;
};

/// The records of a file from any offset on.
class Records {
 public:
  Records(std::string file, std::ifstream in, RowForm form, std::size_t bytes_max)
      : file_(std::move(file)),
        in_(std::move(in)),
        form_(form),
        bytes_max_(bytes_max),
        split_(form == RowForm::kJsonLines  ? split_line
               : form == RowForm::kJsonList ? split_json_element
               : form == RowForm::kTsv      ? split_tsv_line
                                            : split_csv_line) {}

  std::string where(std::int64_t number) const {
    return file_ + (form_ == RowForm::kJsonLines ? ":" : ": row ") +
           std::to_string(number - before_);
  }
  /// Counts from here: what was read so far are no rows.
  void start_counting() { before_ = number_; }

  void seek(std::uint64_t offset, std::int64_t number) {
    in_.clear();
    in_.seekg(static_cast<std::streamoff>(offset));
    buffer_.clear();
    at_ = 0;
    offset_ = offset;
    number_ = number;
    last_ = false;
  }

  std::uint64_t offset() const { return offset_; }
  std::int64_t number() const { return number_; }

  /// The next record that is not blank; an empty optional at the end.
  Result<std::optional<Record>> next() {
    while (true) {
      const std::string_view text = std::string_view(buffer_).substr(at_);
      const bool first = offset_ == 0;
      const std::size_t mark =
          first && text.starts_with("\xEF\xBB\xBF") ? 3 : 0;  // byte order mark
      const SplitRecord found =
          !last_ && text.size() < 4 ? SplitRecord() : split_(text.substr(mark), last_, first);
      switch (found.kind) {
        case SplitRecord::Kind::kEnd: return std::optional<Record>();
        case SplitRecord::Kind::kBad:
          return invalid_argument(where(number_ + 1) + ": " + found.problem);
        case SplitRecord::Kind::kRecord: {
          const std::string_view record = text.substr(mark + found.begin, found.end - found.begin);
          const std::size_t used = mark + std::min(found.next, text.size() - mark);
          at_ += used;
          offset_ += used;
          ++number_;
          if (record.size() > bytes_max_) return too_long(number_);
          // A line of tabs is a row of empty fields where they separate fields.
          const char* blanks = form_ == RowForm::kTsv ? " \r" : " \t\r";
          if (record.find_first_not_of(blanks) == std::string_view::npos) {
            if (form_ != RowForm::kJsonLines) --number_;
            break;
          }
          return std::optional<Record>(Record{record, number_});
        }
        case SplitRecord::Kind::kMore: {
          if (text.size() > bytes_max_ + kReadBytes) return too_long(number_ + 1);
          const Status status = fill();
          if (!status.ok()) return status;
        }
      }
    }
  }

 private:
  Status too_long(std::int64_t number) const {
    return invalid_argument(where(number) + ": longer than " + std::to_string(bytes_max_) +
                            " bytes");
  }

  // As much again as there is: a long record is looked through a few times, not once a piece.
  Status fill() {
    buffer_.erase(0, at_);
    at_ = 0;
    const std::size_t had = buffer_.size(), want = std::max(kReadBytes, had);
    buffer_.resize(had + want);
    errno = 0;
    in_.read(buffer_.data() + had, static_cast<std::streamsize>(want));
    buffer_.resize(had + static_cast<std::size_t>(in_.gcount()));
    if (in_.bad()) return runtime::errno_status(errno, "data file " + file_);
    last_ = in_.eof();
    return Status();
  }

  std::string file_;
  std::ifstream in_;
  RowForm form_;
  std::size_t bytes_max_;
  SplitRecord (*split_)(std::string_view, bool, bool);
  std::string buffer_;
  std::size_t at_ = 0;
  std::uint64_t offset_ = 0;  // in the file, of buffer_[at_]
  std::int64_t number_ = 0;
  std::int64_t before_ = 0;
  bool last_ = false;
};

/// Whether a line of fields has a carriage return that no quotes enclose.
bool has_old_line_end(std::string_view line) {
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (c == '\r' && !quoted) return true;
  }
  return false;
}

class TextSource final : public RowSource {
 public:
  TextSource(Records records, RowForm form, bool keep_unreadable)
      : records_(std::move(records)), form_(form), keep_unreadable_(keep_unreadable) {}

  Status open(const std::string& file) {
    if (form_ != RowForm::kCsv && form_ != RowForm::kTsv) return Status();
    const Result<std::optional<Record>> header = records_.next();
    if (!header.ok()) return header.status();
    if (!*header) return Status();  // an empty file has no rows
    if (has_old_line_end((*header)->text))
      return invalid_argument("data file " + file +
                              ": its lines end with a carriage return alone, as on old Macs: "
                              "convert it first (tr '\\r' '\\n')");
    Result<std::vector<std::string>> columns = csv_fields((*header)->text, separator());
    if (!columns.ok())
      return columns.status().with_context("data file " + file + ": the columns' names");
    columns_ = std::move(*columns);
    std::vector<std::string> sorted = columns_;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end())
      return invalid_argument("data file " + file + ": the first line names column '" + *twice +
                              "' twice");
    if (std::any_of(columns_.begin(), columns_.end(),
                    [](const std::string& name) { return invalid_utf8_at(name).has_value(); }))
      return invalid_argument("data file " + file + ": a column's name is not UTF-8");
    records_.start_counting();
    start_ = {records_.offset(), records_.number(), 0};
    return Status();
  }

  Result<std::vector<std::int64_t>> block_rows() override {
    if (!indexed_) {
      records_.seek(start_.offset, start_.number);
      Block block = start_;
      while (true) {
        const Result<std::optional<Record>> record = records_.next();
        if (!record.ok()) return record.status();
        if (*record) ++block.rows;
        if (block.rows > 0 && (!*record || is_full(block))) {
          blocks_.push_back(block);
          block = {records_.offset(), records_.number(), 0};
        }
        if (!*record) break;
      }
      indexed_ = true;
    }
    std::vector<std::int64_t> rows;
    for (const Block& block : blocks_) rows.push_back(block.rows);
    return rows;
  }

  Result<std::vector<RawRow>> read_block(std::int64_t block) override {
    CHECK(block >= 0);
    CHECK(block < static_cast<std::int64_t>(blocks_.size()));
    const Block& from = blocks_[static_cast<std::size_t>(block)];
    records_.seek(from.offset, from.number);
    return read(from);
  }

  Result<std::vector<RawRow>> next() override {
    return read({records_.offset(), records_.number(), kBlockRows});
  }

 private:
  char separator() const { return form_ == RowForm::kTsv ? '\t' : ','; }
  bool is_full(const Block& block) const {
    return block.rows >= kBlockRows || records_.offset() - block.offset >= kBlockBytes;
  }

  Result<std::vector<RawRow>> read(const Block& from) {
    std::vector<RawRow> rows;
    Block block{from.offset, from.number, 0};
    while (block.rows < from.rows) {
      const Result<std::optional<Record>> record = records_.next();
      if (!record.ok()) return record.status();
      if (!*record) break;
      const std::string where = records_.where((*record)->number);
      Result<ordered_json> value = parse((*record)->text, where);
      if (value.ok())
        rows.push_back({std::move(*value), where});
      else if (keep_unreadable_)
        rows.push_back({nullptr, where, value.status().message()});
      else
        return value.status();
      ++block.rows;
      if (is_full(block)) break;
    }
    return rows;
  }

  Result<ordered_json> parse(std::string_view text, const std::string& where) const {
    if (form_ != RowForm::kCsv && form_ != RowForm::kTsv) {
      Result<ordered_json> row = parse_json_text(text, where);
      if (row.ok() && !row->is_object())
        return invalid_argument(where + ": a row must be an object, it is " + json_type_name(*row));
      return row;
    }
    const Result<std::vector<std::string>> fields = csv_fields(text, separator());
    if (!fields.ok()) return fields.status().with_context(where);
    if (fields->size() != columns_.size()) {
      return invalid_argument(where + ": it has " + std::to_string(fields->size()) +
                              " fields, and the first line names " +
                              std::to_string(columns_.size()) + " columns");
    }
    ordered_json row = ordered_json::object();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& field = (*fields)[i];
      if (const std::optional<std::size_t> bad = invalid_utf8_at(field))
        return invalid_argument(
            where + ", column '" + columns_[i] + "': byte " + std::to_string(*bad) +
            " is not UTF-8: convert the file first (iconv -f latin1 -t utf-8, say)");
      row[columns_[i]] = field;
    }
    return row;
  }

  Records records_;
  RowForm form_;
  bool keep_unreadable_;
  std::vector<std::string> columns_;
  Block start_;
  std::vector<Block> blocks_;
  bool indexed_ = false;
};

/// Texts go to an AtomicFile by way of a buffer.
class TextSink final : public RowSink {
 public:
  TextSink(AtomicFile file, RowForm form, std::vector<std::string> columns)
      : file_(std::move(file)), form_(form), columns_(std::move(columns)) {
    if (form_ == RowForm::kJsonList) buffer_ = "[";
    if (is_csv()) {
      for (const std::string& column : columns_) add_field(column);
      end_line();
    }
  }

  Status write(const RawRow& row) override {
    if (is_csv()) {
      for (const std::string& column : columns_) {
        const auto value = row.value.find(column);
        add_field(value == row.value.end() ? "" : json_as_text(*value));
      }
      end_line();
    } else {
      if (form_ == RowForm::kJsonList) buffer_ += rows_ == 0 ? "\n" : ",\n";
      buffer_ += json_line(row.value);
      if (form_ == RowForm::kJsonLines) buffer_ += '\n';
    }
    ++rows_;
    return buffer_.size() < kBlockBytes ? Status() : flush();
  }

  Status commit() override {
    if (form_ == RowForm::kJsonList) buffer_ += "\n]\n";
    const Status status = flush();
    return status.ok() ? file_.commit() : status;
  }

 private:
  bool is_csv() const { return form_ == RowForm::kCsv || form_ == RowForm::kTsv; }

  void add_field(std::string_view text) {
    const char separator = form_ == RowForm::kTsv ? '\t' : ',';
    if (in_line_) buffer_ += separator;
    in_line_ = true;
    // A line that is one empty field would be a blank line, which is no row.
    buffer_ += text.empty() && columns_.size() == 1 ? "\"\"" : csv_field(text, separator);
  }

  void end_line() {
    buffer_ += '\n';
    in_line_ = false;
  }

  Status flush() {
    const Status status = file_.write(buffer_);
    buffer_.clear();
    return status;
  }

  AtomicFile file_;
  RowForm form_;
  std::vector<std::string> columns_;
  std::string buffer_;
  std::int64_t rows_ = 0;
  bool in_line_ = false;
};

}  // namespace

Result<std::unique_ptr<RowSource>> open_text_rows(const std::string& file, RowForm form,
                                                  const RowSourceOptions& options) {
  const std::string path = expand_home(file);
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return runtime::errno_status(errno, "data file " + path);
  auto source = std::make_unique<TextSource>(
      Records(file, std::move(in), form, options.row_bytes_max), form, options.keep_unreadable);
  const Status status = source->open(file);
  if (!status.ok()) return status;
  return std::unique_ptr<RowSource>(std::move(source));
}

Result<std::unique_ptr<RowSink>> create_text_rows(const std::string& file, RowForm form,
                                                  const RowType& type) {
  Result<AtomicFile> out = AtomicFile::create(expand_home(file));
  if (!out.ok()) return out.status();
  std::vector<std::string> columns;
  for (const auto& [name, child] : type.fields) columns.push_back(name);
  if (columns.empty() && form != RowForm::kJsonLines && form != RowForm::kJsonList)
    return invalid_argument(file + ": the rows have no columns");
  return std::unique_ptr<RowSink>(
      std::make_unique<TextSink>(std::move(*out), form, std::move(columns)));
}

}  // namespace rl
