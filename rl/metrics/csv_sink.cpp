#include "rl/metrics/csv_sink.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "rl/data/record_split.h"
#include "rl/metrics/log_file.h"
#include "rl/weights/atomic_file.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr char kSeparator = ',';

std::string csv_number(double value) {
  if (std::isnan(value)) return "nan";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

}  // namespace

Result<std::unique_ptr<CsvSink>> CsvSink::open(const std::filesystem::path& file,
                                               std::int64_t last_step) {
  if (Status made = make_folder_of(file); !made.ok()) return made;
  std::unique_ptr<CsvSink> sink(new CsvSink(file));
  const std::vector<Row> rows = sink->read(last_step);
  for (const Row& row : rows) sink->add_columns(row);
  if (Status status = sink->rewrite(rows); !status.ok()) return status;
  return sink;
}

// Names of metrics and their numbers hold no line ends, so a line is a row. One cut short by a kill
// has no end.
std::vector<CsvSink::Row> CsvSink::read(std::int64_t last_step) const {
  std::vector<Row> rows;
  if (last_step == 0) return rows;  // what is before the first step is behind any checkpoint
  std::ifstream in(path_, std::ios::binary);
  std::string text;
  if (!std::getline(in, text)) return rows;
  const Result<std::vector<std::string>> header = csv_fields(text, kSeparator);
  if (!header.ok()) return rows;
  while (std::getline(in, text) && !in.eof()) {
    const Result<std::vector<std::string>> values = csv_fields(text, kSeparator);
    if (!values.ok() || values->size() != header->size()) continue;
    Row row;
    for (std::size_t i = 0; i < values->size(); ++i) {
      if (!(*values)[i].empty()) row[(*header)[i]] = (*values)[i];
    }
    if (row.contains("phase") || std::atoll(row["step"].c_str()) <= last_step)
      rows.push_back(std::move(row));
  }
  return rows;
}

bool CsvSink::add_columns(const Row& row) {
  const std::size_t before = columns_.size();
  for (const auto& [name, value] : row) {
    if (std::find(columns_.begin(), columns_.end(), name) == columns_.end())
      columns_.push_back(name);
  }
  return columns_.size() > before;
}

std::string CsvSink::line(const Row& row) const {
  std::string text;
  for (const std::string& column : columns_) {
    const auto found = row.find(column);
    text += (text.empty() ? "" : ",") +
            (found == row.end() ? "" : csv_field(found->second, kSeparator));
  }
  return text + "\n";
}

Status CsvSink::rewrite(const std::vector<Row>& rows) const {
  std::string text;
  for (const std::string& column : columns_)
    text += (text.empty() ? "" : ",") + csv_field(column, kSeparator);
  text += "\n";
  for (const Row& row : rows) text += line(row);
  return write_file_atomically(path_, text);
}

Status CsvSink::write(const StepRecord& record) {
  Row row{{"step", std::to_string(record.step)},
          {"total", std::to_string(record.total)},
          {"epoch", std::to_string(record.epoch)}};
  if (!record.phase.empty()) row["phase"] = record.phase;
  for (const auto& [name, value] : record.metrics) row[name] = csv_number(value);
  const std::size_t in_file = columns_.size();
  if (!add_columns(row)) {
    Result<LogFile> file =
        LogFile::open(path_);  // again, since a row with a new column replaces the file
    return file.ok() ? file->write(line(row)) : file.status();
  }
  std::vector<Row> rows = read(std::numeric_limits<std::int64_t>::max());
  rows.push_back(std::move(row));
  const Status written = rewrite(rows);
  if (!written.ok()) columns_.resize(in_file);
  return written;
}

}  // namespace rl
